/// Whether a build can read a command, judged by the numbers in it alone.
package enum CommandReading: Sendable, Equatable {
    /// Builds of this level and later can apply it.
    case readable(since: FeatureLevel)
    /// A later build wrote it: the text names the number that is not known here.
    case newer(String)
    /// No build wrote it, or it is damaged: applying it changes nothing, on every replica alike.
    case malformed

    /// The same, as a build of this level sees it.
    package func asSeen(by build: FeatureLevel) -> CommandReading {
        guard case .readable(let level) = self, level > build else { return self }
        return .newer("a format of feature level \(level)")
    }

    /// The reading of a command of which two parts read like this.
    package func joined(with other: CommandReading) -> CommandReading {
        switch (self, other) {
        case (.readable(let one), .readable(let two)): .readable(since: max(one, two))
        case (.newer, _): self
        case (_, .newer): other
        case (.malformed, _), (_, .malformed): .malformed
        }
    }

    /// One number of a family. Zero stands for nothing in families of formats, so it is damage.
    package static func of(_ number: UInt8?, in family: NumberFamily) -> CommandReading {
        guard let number else { return .malformed }
        if let level = family.level(of: number) { return .readable(since: level) }
        return number == 0 ? .malformed : .newer("\(family.name) \(number)")
    }

    /// A body that begins with its version and its kind.
    package static func of(
        _ body: Bytes, version: NumberFamily, kind: NumberFamily
    ) -> CommandReading {
        let first = CommandReading.of(body.first, in: version)
        guard case .readable = first else { return first }
        return first.joined(with: .of(body.count > 1 ? body[1] : nil, in: kind))
    }
}

extension Command {
    /// The reading of the envelope and the first bytes of the body. Everything that is new inside a
    /// body comes with a new version or kind of that body, so nothing else has to be looked at.
    ///
    /// The rows that an identity command names and the mail in a delivery have kinds of their own:
    /// the state that owns them looks at those (``ReplicatedState/reading(of:)``).
    package var reading: CommandReading {
        let envelope = CommandReading.of(self.kind.rawValue, in: .commandKind)
        let body: CommandReading =
            switch self.kind {
            case .records: .of(self.body, version: .recordCommandVersion, kind: .recordCommand)
            case .identity: .of(self.body.first, in: .identityCommandVersion)
            case .system: .of(self.body, version: .systemCommandVersion, kind: .systemCommand)
            case .mail: .of(self.body, version: .mailCommandVersion, kind: .mailCommand)
            // Tests replicate states of their own by it, each with a format of its own.
            case .reference: .readable(since: .one)
            }
        return envelope.joined(with: body)
    }

    /// The level that the cluster must have before this is sent.
    package var level: FeatureLevel {
        if case .readable(let level) = self.reading { return level }
        return .unregistered
    }

    /// The reading of an encoded command that this build's decoder refuses.
    package static func readingOfEnvelope(_ payload: Bytes) -> CommandReading {
        let version = CommandReading.of(payload.first, in: .commandVersion)
        guard case .readable = version else { return version }
        let kind = CommandReading.of(payload.count > 1 ? payload[1] : nil, in: .commandKind)
        if case .readable = kind { return .malformed }
        return kind
    }
}
