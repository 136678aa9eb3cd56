"""Files that commands write hold texts, and are replaced whole."""

import stat

from ragaliq.core.files import replace_file


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_its_owners_and_an_existing_one_keeps_its_mode(tmp_path):
    path = tmp_path / "summary.json"
    replace_file(path, "1")
    assert mode(path) == 0o600
    path.chmod(0o644)
    replace_file(path, "2")
    assert (path.read_text(), mode(path)) == ("2", 0o644)


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    target, link = tmp_path / "published.json", tmp_path / "latest.json"
    target.write_text("1")
    link.symlink_to(target)
    replace_file(link, "2")
    assert link.is_symlink()
    assert target.read_text() == "2"
