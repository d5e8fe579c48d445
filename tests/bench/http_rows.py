# SPDX-License-Identifier: Apache-2.0
"""The rows of ./dev bench about lodged: over HTTP, under load, large transfers, beside nginx, at rest."""

KINDS = (("enter", "enter a session that is there"), ("status", "status (GET a session)"), ("read", "read a file of 4 kB"),
         ("write", "write a file of 4 kB"), ("exec", "run `echo hi`"))
CONNECTIONS = (1, 8, 64)
CONTENDERS = (("lodge", "lodge"), ("nginx", "nginx"), ("beside", "the lodged beside it"))
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
        if not r.all("gigabyte_http/lodge/us"):
            return rows
        rows.append(self.row("1 GiB of output over HTTP / through a bare pipe and cat",
                             " / ".join(self.speed(f"gigabyte_http/{x}/us") for x in ("lodge", "cat")) + " MB/s",
                             self.faster("gigabyte_http", "lodge", "cat", 0.5)))
        kb = r.values["yes_http/growth_kb"]
        rows.append(self.row("`yes` to a slow reader over HTTP: growth of lodged and its logs", f"{kb / 1024:.1f} MB",
                             self.target("growth", kb, "<=", 8192, "kB")))
        return rows

    def beside(self, key):
        """Ratios of lodge to the others that were measured; there are no targets for them."""
        return [self.target(name, self.r.ratio(key % "lodge", key % caller), "<=", None)
                for caller, name in CONTENDERS[1:] if self.r.all(key % caller)]

    def each(self, key, figure, names=CONTENDERS):
        return " / ".join(f"{name} {figure(self.r.median(key % caller))}" for caller, name in names if self.r.all(key % caller))

    def front(self):
        r = self.r
        if not r.all("front_type/lodge/p50"):
            return []
        rows = [self.get_row(n, caller, name) for n in (1, 8, 64, 512) for caller, name in CONTENDERS
                if r.all(f"front_get_{n}/{caller}/per_s")]
        kb = lambda v: f"{v:.1f} kB"
        rows.append(self.row(f"resident memory per idle connection, {r.values['front_idle/count']:,.0f} of them",
                             self.each("front_idle/%s/kb", kb), *self.beside("front_idle/%s/kb")))
        rows.append(self.row(f"resident memory per open stream of events, {r.values['front_streams/count']:,.0f} of them",
                             self.each("front_streams/%s/kb", kb), *self.beside("front_streams/%s/kb")))
        rows.append(self.row("threads of lodged with them", self.each("front_streams/%s/threads", "{:.0f}".format)))
        rows += self.file_rows("", "") + self.file_rows("_tls", ", TLS")
        rows += self.terminal_rows()
        return rows

    def get_row(self, n, caller, name):
        r, key = self.r, f"front_get_{n}/%s/%s"
        get = lambda part: r.median(key % (caller, part))
        calls = f"{get('calls'):.1f} system calls" if get("calls") is not None else "system calls not measured"
        text = (f"{get('per_s'):,.0f} per second, p50 {self.ms(get('p50'))}, p99 {self.ms(get('p99'))}; each {get('cpu_us'):.1f} us of "
                f"processor time, {get('switches'):.2f} context switches, {calls}")
        targets = self.beside(key % ("%s", "per_s")) if caller == "lodge" else []
        return self.row(f"GET of 1 kB, {n} connection{'s' if n > 1 else ''}: {name}", text, *targets)

    def file_rows(self, suffix, label):
        speed = lambda us: f"{GIGABYTE / us:.0f} MB/s"
        up, down = f"upload{suffix}", f"download{suffix}"
        ratios = [self.faster(up, "lodge", caller, want, name) for caller, name, want in
                 (("cp-sync", "cp + sync", 0.5), ("cp", "cp", 0.5), ("beside", CONTENDERS[2][1], None)) if self.r.all(f"{up}/{caller}/us")]
        more = (("cp", "cp"), ("cp-sync", "cp + sync"))
        return [self.row(f"upload of 1 GiB{label}, synced", self.each(f"{up}/%s/us", speed, CONTENDERS + more), *ratios),
                self.row(f"download of 1 GiB{label}", self.each(f"{down}/%s/us", speed),
                         *(self.faster(down, "lodge", caller, 0.6 if caller == "nginx" else None, name)
                           for caller, name in CONTENDERS[1:] if self.r.all(f"{down}/{caller}/us")))]

    def terminal_rows(self):
        names = CONTENDERS + (("pty", "a bare pty"),)
        speed = lambda us: f"{(64 << 20) / us:.1f} MB/s"
        both = lambda caller: ", ".join(f"{p} {self.ms(self.r.median(f'front_type/{caller}/{p}'))}" for p in ("p50", "p99"))
        typed = " / ".join(f"{name} {both(caller)}" for caller, name in names if self.r.all(f"front_type/{caller}/p50"))
        ratio = self.faster("front_print", "lodge", "beside", None, CONTENDERS[2][1]) if self.r.all("front_print/beside/us") else None
        return [self.row("terminal over TLS: a typed byte and back", typed, *self.beside("front_type/%s/p50")),
                self.row("terminal over TLS: 64 MiB of output", self.each("front_print/%s/us", speed, names), ratio)]

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
