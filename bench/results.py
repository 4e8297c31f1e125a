"""Measurements of one run: medians, spreads, ratios and verdicts."""

import statistics

import jobs as job_table


class Results:
    def __init__(self):
        self.answers = {}  # (job name, server name) → the generator's answers, one a round

    def add(self, job, server, answer):
        self.answers.setdefault((job.name, server), []).append(answer)

    def samples(self, job, server):
        return [answer[job.metric] for answer in self.answers.get((job.name, server), [])]

    def median(self, job, server):
        samples = self.samples(job, server)
        return statistics.median(samples) if samples else None

    def spread(self, job, server):
        """Half the distance between the quartiles, as a share of the median."""
        samples = self.samples(job, server)
        if len(samples) < 2:
            return None
        low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
        return (high - low) / 2 / statistics.median(samples)

    def ratio(self, job, server, base="floor"):
        value, unit = self.median(job, server), self.median(job, base)
        return value / unit if value is not None and unit else None

    def growth(self, job, server):
        earlier = next(j for j in job_table.ALL if j.name == job.growth_from)
        value, base = self.median(job, server), self.median(earlier, server)
        return value / base if value is not None and base else None

    def verdicts(self, job):
        """The targets of this job, as (text, reached or None) pairs."""
        found = []
        if job.value_max is not None:
            found.append((f"≤ {job.value_max:,} {job.unit}",
                          at_most(self.median(job, "rollcall"), job.value_max)))
        if job.ratio_max is not None:
            found.append((f"≤ {job.ratio_max:g} × floor",
                          at_most(self.ratio(job, "rollcall"), job.ratio_max)))
        if job.growth_from is not None:
            found.append(self.growth_verdict(job))
        if job.socketio_gain_min is not None:
            gain = self.ratio(job, "socketio", "rollcall-socketio")
            found.append((f"Socket.IO {job.socketio_gain_min:g} × less",
                          None if gain is None else gain >= job.socketio_gain_min))
        return found

    def growth_verdict(self, job):
        own, floor = self.growth(job, "rollcall"), self.growth(job, "floor")
        if own is None or floor is None:
            return "as with few", None
        limit = job_table.GROWTH_MAX * max(1, floor)
        return f"grows {own:.2f} ×, ≤ {limit:.2f} ×", own <= limit

    def as_json(self):
        return {
            job.name: {
                server: {
                    "median": self.median(job, server),
                    "spread": self.spread(job, server),
                    "times_floor": self.ratio(job, server),
                    "unit": job.unit,
                    "rounds": self.answers[job.name, server],
                }
                for server in job.servers if (job.name, server) in self.answers
            }
            for job in job_table.ALL
        }


def at_most(value, limit):
    return None if value is None else value <= limit
