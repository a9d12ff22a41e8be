import StratusCluster
import StratusCoding
import StratusHTTP
import StratusIdentity
package import StratusModel
package import StratusPush
import StratusRecords
import StratusRows
import StratusRuntime

/// What administrators ask: the devices of a user, why a change would reach them, and a push to
/// one of them.
extension PushDesk {
    /// The devices and poll tokens of a user, by name.
    @concurrent
    package func devices(
        of user: String, in container: ContainerReference, until deadline: MonotonicTime
    ) async throws -> [PushDevice] {
        try await self.listed(of: user, in: container, until: deadline).map(\.device)
    }

    private struct Listed {
        var device: PushDevice
        /// Who is told through it, with the roles of now.
        var principal: Principal?
    }

    private func databases(
        of user: String, in container: ContainerReference
    ) async throws -> [DatabaseID] {
        let layout = try await self.authenticator?.layout(of: container) ?? ContainerLayout()
        return Device.Registration(
            container: container, userRecordName: user, isServerKey: false
        ).databases(layout)
    }

    private func listed(
        of user: String, in container: ContainerReference, until deadline: MonotonicTime
    ) async throws -> [Listed] {
        var followers: [Bytes: PushDevice] = [:]
        for database in try await self.databases(of: user, in: container) {
            let audience = try await self.audience(
                AudienceAsk(database) { _ in },
                Principal(kind: .user, userRecordName: user), until: deadline)
            for follower in audience.followers {
                var device =
                    followers[follower.token]
                    ?? PushDevice(
                        token: follower.token,
                        kind: follower.kind == .poll ? .poll : .unknown,
                        movedAt: follower.milliseconds)
                device.behind += audience.lastEvent - min(audience.lastEvent, follower.position)
                device.movedAt = max(device.movedAt, follower.milliseconds)
                followers[follower.token] = device
            }
        }
        let known = try await self.keys.known(of: container)
        var listed: [Listed] = []
        for token in followers.keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            guard let device = followers[token] else { continue }
            listed.append(
                try await self.completed(device, user, container, known, until: deadline))
        }
        return listed
    }

    private func audience(
        _ ask: AudienceAsk, _ principal: Principal, until deadline: MonotonicTime
    ) async throws -> Audience {
        try await self.partitions.plain.ask(
            ask, at: .database(ask.database), as: Caller(principal, until: deadline))
    }

    /// Adds what the device's own row says, and what stands in its way.
    private func completed(
        _ found: PushDevice, _ user: String, _ container: ContainerReference,
        _ known: PushKeys.Known, until deadline: MonotonicTime
    ) async throws -> Listed {
        var listed = Listed(device: found)
        guard
            let stored = try await self.devices.device(
                DeviceName(found.token), until: deadline)
        else {
            listed.device.trouble = "its registration has expired or was removed"
            return listed
        }
        listed.device.environment = stored.device.environment
        listed.device.expiresAt = stored.expiresAtMilliseconds
        let provider = stored.device.provider
        if let provider {
            listed.device.kind = provider.kind == .apns ? .apns : .webPush
            listed.device.topic = provider.topic
            listed.device.registeredAt = provider.registeredAtMilliseconds
        }
        let registration = stored.device.registrations.first {
            $0.container == container && $0.userRecordName == user
        }
        guard let registration else {
            listed.device.trouble = "somebody else has registered it since"
            return listed
        }
        guard let listener = try await self.listener(registration) else {
            listed.device.trouble =
                "its session has ended, or the account, the key or the container is closed"
            return listed
        }
        listed.principal = listener.principal
        if listener.isRestricted {
            listed.device.trouble = "the user has closed the private database to apps"
        } else if let provider {
            listed.device.trouble = Self.trouble(provider, known)
        }
        return listed
    }

    private func listener(
        _ registration: Device.Registration
    ) async throws -> (principal: Principal, isRestricted: Bool)? {
        guard let authenticator else {
            return (
                Principal(
                    kind: registration.isServerKey ? .serverKey : .user,
                    userRecordName: registration.userRecordName), false
            )
        }
        return try await authenticator.listener(registration)
    }

    private static func trouble(
        _ provider: Device.Provider, _ known: PushKeys.Known
    ) -> String? {
        if known.isPaused { return "the container is paused: 'stratusctl push resume'" }
        switch provider.kind {
        case .apns:
            if known.apns.isEmpty { return "the container has no key for APNs" }
            guard
                provider.topic.isEmpty
                    || known.apns.contains(where: { $0.topics.contains(provider.topic) })
            else { return "no key of the container sends to its topic" }
        case .webPush:
            guard known.vapid.contains(where: { String($0.number) == provider.topic }) else {
                return "the container no longer has the key that the browser subscribed with"
            }
        }
        return nil
    }

    // MARK: Explaining

    /// What the user's subscriptions say to a change of this record, and who would be told.
    @concurrent
    package func explain(
        _ question: PushQuestion, until deadline: MonotonicTime
    ) async throws -> PushExplanation {
        let listed = try await self.listed(
            of: question.user, in: question.container, until: deadline)
        // Roles do not depend on the device.
        let principal =
            listed.lazy.compactMap(\.principal).first
            ?? Principal(kind: .user, userRecordName: question.user)
        let layout =
            try await self.authenticator?.layout(of: question.container) ?? ContainerLayout()
        var database = layout.privateDatabase(of: question.user, in: question.container)
            .part(of: question.zone)
        if question.isPublic {
            database =
                PublicDatabase(of: question.container, bucketCount: layout.publicBucketCount)
                .part(of: question.record)
        }
        let reason: Subscription.Reasons =
            switch question.change {
            case .create: .created
            case .update: .updated
            case .delete: .deleted
            }
        let audience = try await self.audience(
            AudienceAsk(database) {
                $0.change = AudienceAsk.Change {
                    $0.zone = question.zone
                    $0.record = question.record
                    $0.reason = reason
                }
            },
            principal, until: deadline)
        var devices = listed.map(\.device)
        if question.isPublic {
            // A restriction is about the private database alone.
            let known = try await self.keys.known(of: question.container)
            for (index, one) in listed.enumerated() where one.principal != nil {
                let stored = try await self.devices.device(
                    DeviceName(one.device.token), until: deadline)
                devices[index].trouble = stored?.device.provider.flatMap {
                    Self.trouble($0, known)
                }
            }
        }
        return PushExplanation(
            hasRecord: audience.hasRecord,
            findings: audience.findings.map { Self.finding($0, question) },
            isCut: audience.isCut, devices: devices)
    }

    private static func finding(
        _ finding: Audience.Finding, _ question: PushQuestion
    ) -> PushFinding {
        let kind =
            switch finding.kind {
            case .query: "query"
            case .zone: "zone"
            case .database: "database"
            }
        let why =
            switch finding.verdict {
            case .fires: "it fires"
            case .otherKind: "it does not watch such changes"
            case .otherZone:
                question.zone == ZoneID.defaultName && finding.kind != .query
                    ? "it watches custom zones, and the record is in the default zone"
                    : "it watches another zone"
            case .otherReason: "its 'firesOn' has no '\(question.change.rawValue)'"
            case .otherType: "it watches another record type"
            case .filterBroken:
                "its filters cannot be asked: the schema has lost its type or a field of it"
            case .filterFails: "the record does not match its filter number \(finding.filter)"
            case .mayNotRead: "the user may not read the record"
            case .noRecord: "there is no such record to judge by"
            }
        return PushFinding(
            subscription: finding.subscription, kind: kind, fires: finding.verdict == .fires,
            why: why)
    }

    // MARK: A push to one device

    /// Why no test push can be made.
    package enum TrialRefusal: Error, Sendable, Equatable {
        /// No device of the user has a name that begins so.
        case unknown
        /// More than one.
        case ambiguous
        case troubled(String)
    }

    /// A push that shows a text and tells of no change.
    /// - Parameter name: how the device's name begins, in hexadecimal digits; empty: the only one.
    @concurrent
    package func trial(
        _ text: String, to name: String, of user: String, in container: ContainerReference,
        until deadline: MonotonicTime
    ) async throws -> PreparedPush {
        let found = try await self.devices(of: user, in: container, until: deadline).filter {
            ($0.kind == .apns || $0.kind == .webPush)
                && Hexadecimal.text($0.token).hasPrefix(name.lowercased())
        }
        guard let device = found.first else { throw TrialRefusal.unknown }
        guard found.count == 1 else { throw TrialRefusal.ambiguous }
        if let trouble = device.trouble { throw TrialRefusal.troubled(trouble) }
        guard
            let row = try await self.devices.device(
                DeviceName(device.token), until: deadline)?.device,
            let provider = row.provider
        else { throw TrialRefusal.unknown }
        var content = JSONWriter()
        content.object {
            $0.key("notificationInfo")
            $0.object { $0.member("alertBody", text) }
        }
        let hit = News.Hit(
            subscription: Subscription("stratusctl", .database, content: content.finish()),
            isShared: false, event: .zone("stratusctl", ChangeTag(self.world.random() >> 1)))
        let target = PushTarget(
            group: GroupID(0),
            database: DatabaseID(container: container, scope: .private, owner: user),
            subscriber: user, token: device.token)
        guard
            let push = try self.prepare(
                hit, for: target, row, provider, try await self.keys.known(of: container))
        else { throw TrialRefusal.troubled("the container has no key that sends to it") }
        return push
    }
}
