import StratusCoding
package import StratusModel

/// Asks who would hear of a change: the followers of one user, and what each of the user's
/// subscriptions says. The user is the principal, with the roles that reading is judged by.
package struct AudienceAsk: Sendable, Equatable {
    /// A change that somebody could make.
    package struct Change: Sendable, Equatable {
        package var zone: String
        package var record: String
        package var reason: Subscription.Reasons

        package init(zone: String, record: String, reason: Subscription.Reasons) {
            self.zone = zone
            self.record = record
            self.reason = reason
        }
    }

    package var database: DatabaseID
    /// Nil: only the followers are asked for.
    package var change: Change?

    package init(database: DatabaseID, change: Change? = nil) {
        self.database = database
        self.change = change
    }
}

/// Why a subscription fires for an event, or does not.
package enum NewsVerdict: UInt8, Sendable, CaseIterable {
    case fires = 1
    /// It watches records and the event is a zone's, or the other way round.
    case otherKind = 2
    case otherZone = 3
    case otherReason = 4
    case otherType = 5
    /// A filter does not compile by the schema as it is.
    case filterBroken = 6
    case filterFails = 7
    /// Its owner may not read the record.
    case mayNotRead = 8
    /// There is no such record to judge by.
    case noRecord = 9
}

/// The answer to ``AudienceAsk``.
package struct Audience: Sendable, Equatable {
    package struct Follower: Sendable, Equatable {
        package var token: Bytes
        package var kind: NewsFollower
        /// The last event that it was told, or that was looked at for it.
        package var position: UInt64
        /// When it was moved last.
        package var milliseconds: Int64

        package init(token: Bytes, kind: NewsFollower, position: UInt64, milliseconds: Int64) {
            self.token = token
            self.kind = kind
            self.position = position
            self.milliseconds = milliseconds
        }
    }

    package struct Finding: Sendable, Equatable {
        package var subscription: String
        package var kind: Subscription.Kind
        package var verdict: NewsVerdict
        /// The filter that fails, from 1; otherwise 0.
        package var filter: Int

        package init(
            subscription: String, kind: Subscription.Kind, verdict: NewsVerdict, filter: Int = 0
        ) {
            self.subscription = subscription
            self.kind = kind
            self.verdict = verdict
            self.filter = filter
        }
    }

    package var lastEvent: UInt64
    package var followers: [Follower]
    /// Whether the record is there.
    package var hasRecord: Bool
    package var findings: [Finding]
    /// Whether there are subscriptions that were not asked.
    package var isCut: Bool

    package init(
        lastEvent: UInt64 = 0, followers: [Follower] = [], hasRecord: Bool = false,
        findings: [Finding] = [], isCut: Bool = false
    ) {
        self.lastEvent = lastEvent
        self.followers = followers
        self.hasRecord = hasRecord
        self.findings = findings
        self.isCut = isCut
    }
}

// Ask: database, flag change: text zone, text record, 1 reason. Answer: varint last event; count of
// followers, each 16 token, flag device, varint position, signed milliseconds; flag record; count
// of findings, each text ID, 1 kind, 1 verdict, varint filter; flag cut.

extension ByteWriter {
    mutating func write(_ ask: AudienceAsk) {
        self.write(ask.database)
        self.write(flag: ask.change != nil)
        guard let change = ask.change else { return }
        self.write(text: change.zone)
        self.write(text: change.record)
        self.write(change.reason.rawValue)
    }

    mutating func write(_ audience: Audience) {
        self.write(varint: audience.lastEvent)
        self.write(count: audience.followers.count)
        for follower in audience.followers {
            self.write(raw: follower.token)
            self.write(flag: follower.kind == .device)
            self.write(varint: follower.position)
            self.write(signed: follower.milliseconds)
        }
        self.write(flag: audience.hasRecord)
        self.write(count: audience.findings.count)
        for finding in audience.findings {
            self.write(text: finding.subscription)
            self.write(finding.kind.rawValue)
            self.write(finding.verdict.rawValue)
            self.write(count: finding.filter)
        }
        self.write(flag: audience.isCut)
    }
}

extension ByteReader {
    mutating func audienceAsk() throws(DecodingError) -> AudienceAsk {
        var ask = AudienceAsk(database: try self.database())
        guard try self.flag() else { return ask }
        let (zone, record) = (try self.text(), try self.text())
        let start = self.offset
        let reason = Subscription.Reasons(rawValue: try self.byte())
        guard [.created, .updated, .deleted].contains(reason) else {
            throw DecodingError(.malformed, at: start)
        }
        ask.change = AudienceAsk.Change(zone: zone, record: record, reason: reason)
        return ask
    }

    mutating func audience() throws(DecodingError) -> Audience {
        var audience = Audience(lastEvent: try self.varint())
        for _ in 0..<(try self.count(minimumSize: 19)) {
            let token = try self.token()
            let kind: NewsFollower = try self.flag() ? .device : .poll
            audience.followers.append(
                Audience.Follower(
                    token: token, kind: kind, position: try self.varint(),
                    milliseconds: try self.signed()))
        }
        audience.hasRecord = try self.flag()
        for _ in 0..<(try self.count(minimumSize: 4)) {
            let id = try self.text()
            let start = self.offset
            guard let kind = Subscription.Kind(rawValue: try self.byte()),
                let verdict = NewsVerdict(rawValue: try self.byte())
            else { throw DecodingError(.malformed, at: start) }
            audience.findings.append(
                Audience.Finding(
                    subscription: id, kind: kind, verdict: verdict,
                    filter: try self.boundedInt()))
        }
        audience.isCut = try self.flag()
        return audience
    }
}
