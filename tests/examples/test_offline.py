"""The other tests here would not pass if a demo reached another machine."""


def test_a_script_that_leaves_this_machine_is_stopped(run_demo, tmp_path):
    script = tmp_path / "leaves.py"
    script.write_text(
        "import socket\nsocket.socket().connect(('192.0.2.1', 80))\n"  # an address nobody has
    )
    assert run_demo(script).returncode == 97
