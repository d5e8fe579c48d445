# SPDX-License-Identifier: Apache-2.0
"""The rows of ./dev bench about lodged: over HTTP, under load, large transfers, at rest."""

KINDS = (("enter", "enter a session that is there"), ("status", "status (GET a session)"), ("read", "read a file of 4 kB"),
         ("write", "write a file of 4 kB"), ("exec", "run `echo hi`"))
CONNECTIONS = (1, 8, 64)
GIGABYTE = 1 << 30


class Rows:
    """`tools` has row, Target and ms of the table."""

    def __init__(self, results, tools):
        self.r, self.row, self.target, self.ms = results, tools.row, tools.Target, tools.ms

    def timed(self, name, key, want):
        floor = "http/bare-bash/end"
        target = self.target("the bare spawn", self.r.ratio(key, floor), "<=", want) if want else None
        return self.row(name, f"{self.ms(self.r.median(key))} ({self.ms(self.r.median(floor))})", target)

    def http(self):
        r, rows = self.r, []
        if not r.all("http_live/lodge/end"):
            return rows
        rows += [
            self.timed("over HTTP (bare spawn): pool hit, enter + first command", "http_pool/lodge/end", 1.2),
            self.timed("over HTTP (bare spawn): no pool, enter + first command", "http_cold/lodge/end", None),
            self.timed("over HTTP (bare spawn): command in a live session, shell not armed", "http_live/lodge/end", 1.4),
            self.timed("over HTTP (bare spawn): command in a live session, armed shell", "http_armed/lodge/end", 0.7),
        ]
        mine, bwrap = "http_burst/lodge/us", "http_burst/bwrap/us"
        rows.append(self.row("burst of 100: enter + first command over HTTP / bwrap, 100 plain runs",
                             f"{self.ms(r.median(mine))} / {self.ms(r.median(bwrap))}",
                             self.target("bwrap", r.ratio(mine, bwrap), "<=", 1),
                             self.target("of them well", min(r.all("http_burst/lodge/percent")), ">=", 100, "%")))
        return rows

    def load(self):
        r, rows = self.r, []
        for kind, label in KINDS:
            for n in CONNECTIONS:
                key = f"load_{kind}_{n}/lodge/%s"
                if not r.all(key % "per_s"):
                    continue
                text = (f"{r.median(key % 'per_s'):,.0f} per second, p50 {self.ms(r.median(key % 'p50'))}, "
                        f"p99 {self.ms(r.median(key % 'p99'))}; {r.median(key % 'cpu_us'):.0f} us of processor time each")
                target = self.target("per second", r.median(key % "per_s"), ">=", 10000, "") if (kind, n) == ("status", 64) else None
                rows.append(self.row(f"{label}, {n} connection{'s' if n > 1 else ''}", text, target))
        return rows

    def speed(self, key):
        return f"{GIGABYTE / self.r.median(key):.0f}" if self.r.median(key) else "-"

    def faster(self, name, contender, other, want, label=None):
        """The speed of `contender` relative to another."""
        return self.target(label or other, self.r.ratio(f"{name}/{other}/us", f"{name}/{contender}/us"), ">=", want)

    def traffic(self):
        r, rows = self.r, []
        if not r.all("download/lodge/us"):
            return rows
        rows.append(self.row("1 GiB of output over HTTP / through a bare pipe and cat",
                             " / ".join(self.speed(f"gigabyte_http/{x}/us") for x in ("lodge", "cat")) + " MB/s",
                             self.faster("gigabyte_http", "lodge", "cat", 0.5)))
        kb = r.values["yes_http/growth_kb"]
        rows.append(self.row("`yes` to a slow reader over HTTP: growth of lodged and its logs", f"{kb / 1024:.1f} MB",
                             self.target("growth", kb, "<=", 8192, "kB")))
        rows.append(self.row("upload of 1 GiB, synced / cp / cp + sync",
                             " / ".join(self.speed(f"upload/{x}/us") for x in ("lodge", "cp", "cp-sync")) + " MB/s",
                             self.faster("upload", "lodge", "cp-sync", 0.5, "cp + sync"), self.faster("upload", "lodge", "cp", 0.5)))
        rows.append(self.row("download of 1 GiB / from nginx",
                             " / ".join(self.speed(f"download/{x}/us") for x in ("lodge", "nginx")) + " MB/s",
                             self.faster("download", "lodge", "nginx", 0.6)))
        return rows

    def standing(self):
        v, rows = self.r.values, []
        if "standing/idle_kb" not in v:
            return rows
        kb = lambda name, want: self.target("resident", v[f"standing/{name}_kb"], "<=", want, "kB")
        rows += [
            self.row("lodged: just started / idle after work", f"{v['standing/new_kb'] / 1024:.1f} / {v['standing/idle_kb'] / 1024:.1f} MB",
                     kb("idle", 15 * 1024)),
            self.row("lodged: each idle connection", f"{v['standing/connection_kb']:.1f} kB", kb("connection", 20)),
            self.row("lodged: each idle session that sleeps", f"{v['standing/record_kb']:.1f} kB", kb("record", 4)),
            self.row("lodged: each idle session whose sandbox lives", f"{v['standing/live_kb']:.1f} kB", kb("live", 4)),
        ]
        if "standing/crowd" in v:
            rows.append(self.row(f"lodged: processor time with {v['standing/crowd']:,.0f} idle sessions",
                                 f"{v['standing/crowd_cpu_percent']:.2f} %, {v['standing/crowd_kb'] / 1024:.0f} MB resident",
                                 self.target("of one core", v["standing/crowd_cpu_percent"], "<=", 0.5, "%")))
        return rows
