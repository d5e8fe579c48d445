# SPDX-License-Identifier: Apache-2.0
"""The files for Prometheus and Grafana: Debian's Prometheus takes them, and every query finds something."""
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request

import pytest

from client import KEY, Lodged, wait_for
from pages import TOP

RULES = os.path.join(TOP, "packaging/prometheus/lodge.rules.yml")
SCRAPE = os.path.join(TOP, "packaging/prometheus/scrape.yml")
DASHBOARD = os.path.join(TOP, "packaging/grafana/lodge.json")


def program(name):
    """Installed, or unpacked by `./dev test`."""
    there = shutil.which(name) or os.path.join(TOP, "build/prometheus/usr/bin", name)
    assert os.access(there, os.X_OK), f"no {name}: install Debian's prometheus, or run `./dev test`, which fetches it"
    return there


def promtool(*args):
    r = subprocess.run([program("promtool"), *args], capture_output=True, text=True, timeout=120, check=False)
    assert r.returncode == 0, r.stdout + r.stderr
    return r.stdout


# ---- rules ------------------------------------------------------------------------------------


AT = '{instance="a"}'
# series under which an alert fires within half an hour, one value per minute
FIRES = {
    "LodgeDown": {'up{job="lodge",instance="a"}': "0x30"},
    "LodgeKeeperDown": {"lodge_keeper_up" + AT: "0x30"},
    "LodgeErrors": {'lodge_requests_total{instance="a",class="2xx"}': "0+600x30",
                    'lodge_requests_total{instance="a",class="5xx"}': "0+60x30"},
    "LodgeFull": {"lodge_sandboxes_max" + AT: "8x30", "lodge_sandboxes_active" + AT: "8x30", "lodge_sandboxes_idle" + AT: "0x30"},
    "LodgeQueue": {"lodge_queue_waiting" + AT: "1x30"},
    "LodgeDiskFull": {"lodge_disk_full" + AT: "1x30"},
    "LodgeDiskLow": {"lodge_disk_free_bytes" + AT: "9x30", "lodge_disk_size_bytes" + AT: "100x30"},
    "LodgeSandboxesDie": {'lodge_sandbox_deaths_total{instance="a",tenant="t",cause="killed"}': "0+1x30"},
    "LodgeOutOfMemory": {'lodge_sandbox_oom_kills_total{instance="a",tenant="t"}': "0+1x30"},
    "LodgeSlowCreate": {'lodge_create_seconds_bucket{instance="a",source="cold",le="1"}': "0x30",
                        'lodge_create_seconds_bucket{instance="a",source="cold",le="5"}': "0+1x30",
                        'lodge_create_seconds_bucket{instance="a",source="cold",le="+Inf"}': "0+1x30"},
}
QUIET = {
    'up{job="lodge",instance="a"}': "1x30", "lodge_keeper_up" + AT: "1x30",
    'lodge_requests_total{instance="a",class="2xx"}': "0+600x30", 'lodge_requests_total{instance="a",class="5xx"}': "0+1x30",
    "lodge_sandboxes_max" + AT: "8x30", "lodge_sandboxes_active" + AT: "8x30", "lodge_sandboxes_idle" + AT: "1x30",
    "lodge_queue_waiting" + AT: "0x30", "lodge_disk_full" + AT: "0x30", "lodge_disk_free_bytes" + AT: "50x30",
    "lodge_disk_size_bytes" + AT: "100x30",
    'lodge_sandbox_deaths_total{instance="a",tenant="t",cause="idle"}': "0+100x30",
    'lodge_sandbox_deaths_total{instance="a",tenant="t",cause="oom"}': "3x30",
    'lodge_sandbox_oom_kills_total{instance="a",tenant="t"}': "100x30",
    'lodge_create_seconds_bucket{instance="a",source="cold",le="1"}': "0+1x30",
    'lodge_create_seconds_bucket{instance="a",source="cold",le="+Inf"}': "0+1x30",
}


def test_promtool_accepts_the_files():
    assert re.search(r"SUCCESS: (\d+) rules", promtool("check", "rules", RULES)).group(1) == str(len(FIRES))
    promtool("check", "config", "--syntax-only", SCRAPE)


def test_every_alert_fires_when_it_should(tmp_path):
    with open(RULES, encoding="ascii") as f:
        assert re.findall(r"- alert: (\w+)", f.read()) == list(FIRES)

    def case(series, alert, samples):
        return {"interval": "1m", "input_series": [{"series": s, "values": v} for s, v in series.items()],
                "promql_expr_test": [{"expr": f'count(ALERTS{{alertname=~"{alert}",alertstate="firing"}})', "eval_time": "30m",
                                      "exp_samples": samples}]}

    tests = [case(series, alert, [{"labels": "{}", "value": 1}]) for alert, series in FIRES.items()]
    tests.append(case(QUIET, ".*", []))
    (tmp_path / "test.yml").write_text(json.dumps({"rule_files": [RULES], "evaluation_interval": "1m", "tests": tests}))
    promtool("test", "rules", str(tmp_path / "test.yml"))


# ---- queries ----------------------------------------------------------------------------------


class Prometheus:
    def __init__(self, directory, lodged):
        """With the shipped configuration: only the paths, the target and the interval differ."""
        with open(SCRAPE, encoding="ascii") as f:
            text = f.read()
        for was, now in (("/usr/share/lodge/prometheus/lodge.rules.yml", RULES), ("/etc/prometheus/lodge.key", str(directory / "key")),
                         ("127.0.0.1:7070", f"{lodged.host}:{lodged.port}")):
            assert text.count(was) == 1, was
            text = text.replace(was, now)
        (directory / "key").write_text(KEY)
        (directory / "prometheus.yml").write_text("global: {scrape_interval: 1s, evaluation_interval: 1s}\n" + text)
        self.directory, self.process = directory, None
        assert wait_for(self.start), (directory / "log").read_text()

    def start(self):
        """Prometheus does not choose a free port itself, so another process may take it first."""
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.port = s.getsockname()[1]
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                [program("prometheus"), f"--config.file={self.directory}/prometheus.yml", f"--storage.tsdb.path={self.directory}/data",
                 f"--web.listen-address=127.0.0.1:{self.port}"], stdout=log, stderr=log, cwd=self.directory)
        return wait_for(self.is_ready) and self.process.poll() is None

    def is_ready(self):
        if self.process.poll() is not None:
            return True
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=10).close()
            return True
        return False

    def get(self, path, **query):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?" + urllib.parse.urlencode(query)
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)["data"]

    def query(self, expression):
        return self.get("query", query=expression)["result"]

    def close(self):
        self.process.terminate()
        self.process.wait(180)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    with contextlib.closing(Lodged()) as d:
        other = d.new_key(tenant="other", scope="tenant")[1]
        use(d.client())
        use(other)
        with contextlib.closing(Prometheus(tmp_path_factory.mktemp("prometheus"), d)) as p:
            yield p
        other.clear()


def use(client):
    sid = client.enter(key="used")
    client.run(sid, "true")
    assert client.post(f"/v1/sessions/{sid}/hibernate").status == 200
    client.run(sid, "true")


def dashboard():
    with open(DASHBOARD, encoding="ascii") as f:
        return json.load(f)


def queries():
    """Those of the dashboard, and those of the rules, whose comparisons would hide the series."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            yield re.sub(r"\$(\w+)", lambda m: {"instance": ".*", "tenant": ".*"}.get(m.group(1), "1m"), target["expr"])
    for line in promtool_rules():
        yield re.sub(r"(?<![=!<>{\w\"])(==|!=|<=|>=|<|>)(?= )", r"\1 bool", line)


def promtool_rules():
    """The expressions of the rules, without a parser of YAML."""
    with open(RULES, encoding="ascii") as f:
        for m in re.finditer(r"^ +expr: (?:\|-\n((?: {10,}.*\n)+)|(.*)\n)", f.read(), re.M):
            yield m.group(1) or m.group(2)


def test_every_query_finds_something(prometheus):
    found = list(queries())
    assert len(found) == len(FIRES) + sum(len(p.get("targets", ())) for p in dashboard()["panels"])
    for expression in found:  # a rate needs two scrapes
        assert wait_for(lambda e=expression: prometheus.query(e), 60), expression


def test_series_are_by_tenant(prometheus):
    assert wait_for(lambda: {r["metric"].get("tenant") for r in prometheus.query("sum by (tenant) (lodge_sessions)")} == {"default", "other"})
    for name in re.findall(r"label_values\((\w+), \w+\)", json.dumps(dashboard())):
        assert prometheus.query(name), name


def test_the_rules_are_loaded(prometheus):
    def rules():
        return [r for g in prometheus.get("rules")["groups"] for r in g["rules"]]

    assert [r["name"] for r in rules()] == list(FIRES)
    assert wait_for(lambda: all(r["health"] == "ok" for r in rules())), rules()


def test_panels_name_what_they_show():
    d = dashboard()
    panels = [p for p in d["panels"] if p["type"] != "row"]
    assert len({p["id"] for p in d["panels"]}) == len(d["panels"])
    for p in panels:
        assert p["title"] and p["description"] and p["fieldConfig"]["defaults"]["unit"] and all(t["legendFormat"] for t in p["targets"]), p
        assert p["gridPos"]["x"] + p["gridPos"]["w"] <= 24
