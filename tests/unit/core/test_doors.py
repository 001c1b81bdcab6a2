"""What is imported only when it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mpigraft.core.lazy_exports import deferred


def test_a_deferred_module_has_the_names_of_the_module_and_keeps_them() -> None:
    module = deferred("math")
    assert module.sqrt(4.0) == 2.0
    assert "sqrt" in vars(module)
    with pytest.raises(AttributeError):
        _ = module.no_such_name


def test_words_of_a_report_need_no_numpy() -> None:
    code = "import mpigraft.report.stored, sys; print('numpy' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"
