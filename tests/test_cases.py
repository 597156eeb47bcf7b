"""Every public report has a test, or a reason why none applies, and the document says which."""

from __future__ import annotations

from tests.cases import DOCUMENT, NOT_APPLICABLE, REPORTS, document, marked_tests


def test_every_report_is_exercised_or_explained() -> None:
    """Each of the 96 reports has a marked test or a reason, not both."""
    tested = set(marked_tests())
    assert len(REPORTS) == 96
    assert tested <= set(REPORTS)
    assert tested | set(NOT_APPLICABLE) == set(REPORTS)
    assert not tested & set(NOT_APPLICABLE)


def test_the_document_is_current() -> None:
    """`docs/cases.md` is what `python -m tests.cases` would write."""
    assert DOCUMENT.read_text(encoding="utf-8") == document()
