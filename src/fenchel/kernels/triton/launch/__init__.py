"""What makes a launch: where rows lie in memory, how alpha and other parameters are passed, which tiles a
program takes, and a kernel that is launched again without being sought.
"""
