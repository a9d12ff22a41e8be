import StratusModel

/// The log line of one request.
///
/// Every request has one, so as JSON it is put together here, from texts that are mostly ready, and
/// goes into the log as bytes. For a terminal the log writes its fields.
struct AccessLine {
    var identity: RequestIdentity
    var listener: String
    var method: String
    var route: RequestRoute
    var status: Int
    var duration: Duration
    var received: Int
    var sent: Int
    var isWhole = true
    var peer: String

    var level: LogLevel { self.status >= 500 ? .warning : self.route.level }

    func write(to log: Log) {
        let level = self.level
        guard log.takes(level) else { return }
        guard log.writesJSON else { return log.write(level, "request") { self.fields } }
        log.write(level) { time, line in self.append(time, level, to: &line) }
    }

    var fields: LogFields {
        var fields: LogFields = [
            "request": .text(self.identity.uuid), "listener": .text(self.listener),
            "method": .text(self.method), "route": .text(self.route.label.template),
        ]
        fields.all += self.route.fields().all
        fields.append("status", .count(self.status))
        fields.append("duration", .duration(self.duration))
        fields.append("received", .count(self.received))
        fields.append("sent", .count(self.sent))
        if !self.isWhole { fields.append("cutShort", true) }
        fields.append("peer", .text(self.peer))
        return fields
    }

    /// What ``LogFormat/json`` makes of the fields.
    func append(_ time: Int64, _ level: LogLevel, to line: inout Bytes) {
        LogFormat.append("{\"time\":\"", into: &line)
        WallTime.append(time, to: &line)
        LogFormat.append("\",\"level\":\"", into: &line)
        LogFormat.append(level.name, into: &line)
        LogFormat.append("\",\"text\":\"request\",\"request\":\"", into: &line)
        self.identity.appendUUID(to: &line)
        LogFormat.append("\",\"listener\":", into: &line)
        LogFormat.appendQuoted(self.listener, into: &line)
        LogFormat.append(",\"method\":", into: &line)
        LogFormat.appendQuoted(self.method, into: &line)
        line += self.route.label.member
        if let ready = self.route.members {
            line += ready
        } else {
            LogFormat.appendMembers(self.route.fields(), into: &line)
        }
        LogFormat.append(",\"status\":", into: &line)
        LogFormat.append(Int64(self.status), into: &line)
        LogFormat.append(",\"duration\":", into: &line)
        LogFormat.append(self.duration, into: &line)
        LogFormat.append(",\"received\":", into: &line)
        LogFormat.append(Int64(self.received), into: &line)
        LogFormat.append(",\"sent\":", into: &line)
        LogFormat.append(Int64(self.sent), into: &line)
        if !self.isWhole { LogFormat.append(",\"cutShort\":true", into: &line) }
        LogFormat.append(",\"peer\":", into: &line)
        LogFormat.appendQuoted(self.peer, into: &line)
        LogFormat.append("}\n", into: &line)
    }
}
