import Testing

/// Every raw value that a coding writes is one of the registry of numbers. A value that only new
/// builds know would otherwise make the rows of two releases differ.
@Suite struct RawValueTests {
    let repository = Repository()

    /// What a coding writes, by its file: the family of its numbers, or behind a dash the reason why
    /// it needs none.
    static let families: [String: [String: String]] = [
        "Account.swift": [
            "self.status": "account status", "self.verification": "verification",
        ],
        "BucketMail.swift": ["self.kind": "mail", "self.link.action": "reference action"],
        "ChunkPlace.swift": [
            "coding": "chunk coding", "database.container.environment": "environment",
            "database.scope": "database scope",
        ],
        "ClusterNode.swift": ["self.state": "node state"],
        "CommandCoding.swift": [
            "self.container.environment": "environment", "self.kind": "command kind",
            "self.principal.kind": "principal kind",
        ],
        "ContainerDescriptor.swift": ["self.state": "container state"],
        "ContainerKeys.swift": ["container.environment": "environment"],
        "CopyMessageCoding.swift": ["refusal": "copy refusal"],
        "DatabaseKeys.swift": [
            "database.container.environment": "environment", "database.scope": "database scope",
        ],
        "DatabaseCoding.swift": [
            "container.environment": "environment", "database.scope": "database scope",
        ],
        "Device.swift": [
            "provider.kind": "device kind", "registration.container.environment": "environment",
            "self.environment": "environment",
        ],
        "DocumentCoding.swift": [
            "clash": "document clash", "item.kind": "document kind", "kind": "document kind",
            "reason": "document refusal",
        ],
        "EntryCoding.swift": ["self.kind": "entry kind"],
        "FieldSealer.swift": [
            "self.database.container.environment": "environment",
            "self.database.scope": "database scope",
        ],
        "IdentityCoding.swift": ["key.kind": "identity row", "kind": "identity row"],
        "IndexedSchemaCoding.swift": ["index.kind": "index kind", "index.state": "index state"],
        "Job.swift": ["link.action": "reference action"],
        "LinkEnds.swift": [
            "end.action": "reference action", "self.container.environment": "environment",
        ],
        "Links.swift": ["self.state": "link state"],
        "Notice.swift": ["self.kind": "notice"],
        "PeerEnvelopeCoding.swift": [
            "outcome.verdict": "verdict", "purpose": "peer purpose", "query.kind": "command kind",
            "refusal.reason": "peer refusal",
        ],
        "PeerMessageCoding.swift": ["self.kind": "entry kind"],
        "PredicateCoding.swift": ["field": "system field", "filter.comparator": "comparator"],
        "PrincipalCoding.swift": ["principal.kind": "principal kind"],
        "PushKeyRow.swift": ["kind": "push key"],
        "QueryPosition.swift": [
            "path.kind": "-a marker of a query; a build that does not know it refuses it"
        ],
        "RecordAnswerCoding.swift": [
            "question": "record query", "refusal": "record refusal",
            "change.deletedBefore?": "deletion reason", "change.deletion?": "deletion reason",
            "refusal.reason": "request refusal",
        ],
        "RecordCommandCoding.swift": [
            "operation.reason": "deletion reason", "operation.scope?": "encryption scope",
            "operation.kind": "record operation", "reservation.action": "reference action",
            "self.kind": "record command", "wish.action": "reference action",
        ],
        "RecordOutcomeCoding.swift": [
            "operation": "record command", "refusal": "zone refusal",
            "refusal.reason": "record refusal",
        ],
        "SchemaCoding.swift": ["field.indexes": "-bits", "permission": "permission"],
        "Session.swift": ["self.container.environment": "environment"],
        "ShardKeyCoding.swift": [
            "container.environment": "environment", "database.container.environment": "environment",
            "database.scope": "database scope",
        ],
        "SignInLink.swift": ["self.container.environment": "environment"],
        "SnapshotFrame.swift": ["row.table": "table"],
        "SubscriptionCoding.swift": [
            "reason": "-bits", "subscription.kind": "subscription kind",
            "subscription.reasons": "-bits",
        ],
        "SystemOutcome.swift": ["refusal.reason": "system refusal"],
        "ValueCoding.swift": [
            "element": "scalar type", "reference.action": "reference action",
            "scalar.type": "scalar type", "type.scalar": "scalar type",
        ],
        "ZoneRow.swift": [
            "self.earlierReason?": "deletion reason", "self.end?.reason": "deletion reason",
        ],
    ]

    /// The same of lists of bytes, with which keys begin, and of bytes that are appended.
    static let listed: [String: [String: String]] = [
        "Accounts+AppPasswords.swift": ["container.environment": "environment"],
        "BodySealer.swift": ["coding": "chunk coding"],
        "DocumentNames.swift": ["item.kind": "document kind"],
        "IdentityKey.swift": ["container.environment": "environment", "self.kind": "identity row"],
        "IdentityKeys.swift": ["container.environment": "environment"],
        "IndexJob.swift": ["self.kind": "job", "self.container.environment": "environment"],
        "Keys.swift": [
            "container.environment": "environment",
            "kind": "-reference actions, and 193 and 194 of the tree", "scope": "database scope",
        ],
        "LinkKeys.swift": [
            "0x80 | action": "reference action", "0xF0 | reference.action": "reference action",
        ],
        "PushKeyRow.swift": ["kind": "push key", "Kind.vapid": "push key"],
        "RecordCommandCoding.swift": ["rules.flags": "-bits"],
        "RequestTable.swift": ["outcome.verdict": "verdict"],
        "SubscriptionRows.swift": [
            "kind": "subscription row", "scope": "database scope", "reason": "-bits",
        ],
        "WebAuthToken.swift": ["container.environment": "environment"],
    ]

    @Test func `each raw value that a coding writes has its family`() throws {
        let registry = try self.repository.text("Sources/StratusModel/Levels/NumberRegistry.swift")
        var unknown: [String] = []
        var found: Set<String> = []
        for file in try self.repository.swiftFiles(under: "Sources") where Self.isCoding(file) {
            let name = String(file.path.split(separator: "/").last ?? "")
            for value in Self.values(in: file.text) {
                found.insert("\(name): \(value)")
                guard let family = Self.families[name]?[value] ?? Self.listed[name]?[value] else {
                    unknown.append("\(name): \(value)")
                    continue
                }
                if family.hasPrefix("-") { continue }
                #expect(registry.contains("\"\(family)\","), "\(family) is no family")
            }
        }
        #expect(unknown.isEmpty, "see 'Adding a number' in Docs/internals/levels.md: \(unknown)")
        let known = [Self.families, Self.listed].joined().flatMap { file in
            file.value.keys.map { "\(file.key): \($0)" }
        }
        #expect(Set(known) == found)
    }

    @Test func `a raw value without a family is found`() {
        #expect(Self.values(in: "writer.write(self.shape.rawValue)\n") == ["self.shape"])
        #expect(Self.values(in: "writer.bytes.write(a.rawValue | 0x10)\n") == ["a"])
        #expect(Self.values(in: "writer.write(varint: UInt64(a.b.rawValue))\n") == ["a.b"])
        #expect(Self.values(in: "key.append(0x80 | a.rawValue)\n") == ["0x80 | a"])
        #expect(Self.values(in: "[0, a.rawValue, b.c.rawValue]\n") == ["a", "b.c"])
    }

    private static func isCoding(_ file: SourceFile) -> Bool {
        let modules: Set = [
            "StratusModel", "StratusCoding", "StratusPlacement", "StratusConsensus", "StratusQuery",
            "StratusRecords", "StratusStorage", "StratusCluster", "StratusIdentity",
            "StratusSealing",
        ]
        return modules.contains(file.module)
    }

    private static func values(in text: String) -> [String] {
        // Each stands in one line.
        let text = text.split(separator: "\n").filter { $0.has(".rawValue") }
            .joined(separator: "\n")
        let written = text.matches(
            of: /(?:write|append)\((?:varint: UInt64\()?([^()\n]*)\.rawValue/
        ).map { String($0.output.1) }
        let listed = text.matches(of: /\[([^\[\]\n]*\.rawValue[^\[\]\n]*)\]/).flatMap { list in
            list.output.1.matches(of: /([\w.]+)\.rawValue/).map { String($0.output.1) }
        }
        return written + listed
    }
}
