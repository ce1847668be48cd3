"""What a launch needs: addresses, parameters, tile shapes, compiled kernels and their replay."""
