"""p4perf report on the command line."""

import json
from pathlib import Path

from support.runs import make_run
from typer.testing import CliRunner

from p4perf.cli import loaded


def test_report_writes_a_site_and_tells_where(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", lambda x: 100 + x, starts=1)
    arguments = ["report", str(run), "-o", str(tmp_path / "site"), "--title", "My <runs>", "--format", "json"]
    result = CliRunner().invoke(loaded(), arguments)
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["kind"] == "report"
    assert {row["kind"]: row["pages"] for row in said["rows"]} == {"index": 1, "run": 1}
    assert "My &lt;runs&gt;" in Path(said["index"]).read_text()
    assert said["size_bytes"] > 1_000_000
    (page,) = (tmp_path / "site" / "runs").glob("*.html")
    (_, table) = page.read_text().split("with 95 % intervals: ")
    assert "[" not in table.partition("</table>")[0], "one start has no interval"
