"""The settings of modules: stored as numbers, buffers or parameters, and shown in the repr."""

from __future__ import annotations

from inspect import signature
from typing import Any, ClassVar

from torch import Tensor, nn

from fenchel.checks import NotScriptable, check_number
from fenchel.mechanisms.exponent import Exponent, brief
from fenchel.operators.map_operator import MapOperator


class Settings(NotScriptable, nn.Module):
    """A module whose repr shows its main setting, and the others if they are not the default."""

    main: ClassVar[str | None] = None

    def extra_repr(self) -> str:
        shown = []
        for name, parameter in signature(type(self)).parameters.items():
            value = self._setting(name)
            is_default = not isinstance(value, Tensor) and value == parameter.default
            if name == self.main or not is_default:
                shown.append(f"{name}={brief(value)}")
        return ", ".join(shown)

    def _setting(self, name: str) -> Any:
        return getattr(self, name)


class WithExponent(Settings):
    """A module with a fixed or learned α; subclasses set `exponent`."""

    main = "alpha"
    exponent: Exponent

    @property
    def alpha(self) -> float | Tensor:
        return self.exponent()

    def _setting(self, name: str) -> Any:
        return self.exponent.setting if name == "alpha" else super()._setting(name)

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"  # without the exponent as a child


def hold_parameter(module: nn.Module, operator: MapOperator[Any], value: float | Tensor) -> None:
    """Store the parameter of a map. Numbers are checked now, tensors when the map is called."""
    if not isinstance(value, Tensor):
        check_number(value, name=operator.parameter, above=operator.above, or_tensor=True)
    hold(module, operator.parameter, value)


def hold(module: nn.Module, name: str, value: float | Tensor) -> None:
    """Set `module.name`; a tensor that is not a parameter becomes a buffer."""
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        module.register_buffer(name, value, persistent=False)
    else:
        setattr(module, name, value)
