package import StratusModel

/// Brings the chunks of a range of one body, in order, from this node or from any member.
///
/// A state machine: it is told what happened and says what to do. The size of every copy is held
/// against its row, and then its seal is opened; one that fails is taken elsewhere. What is opened
/// is given out in order and not kept.
package struct BodyReader: Sendable {
    package struct Limits: Sendable, Equatable {
        /// Chunks that are fetched, opened or wait for one before them. 1: no reading ahead.
        package var openCountMax = 4
        /// Times that every source is asked for a chunk.
        package var roundsMax = 2
        package init() {}
    }

    package enum Source: Sendable, Hashable {
        /// This node's own packs.
        case here
        case node(NodeID)
    }

    package enum Failure: Error, Sendable, Equatable {
        /// No source has a sound copy of a chunk.
        case absent(CopyName)
        case deadline
        case cancelled
    }

    package enum Action: Sendable, Equatable {
        case fetch(CopyName, from: Source)
        /// Opens the seal; ``BodyReader/opened(_:_:)`` is told what came of it.
        case open(ordinal: UInt32, Bytes)
        /// The next bytes of the range.
        case send(Bytes)
        /// This node's own copy was not sound, and these bytes are.
        case repair(CopyName, Bytes)
        case finished
        case failed(Failure)
    }

    private struct Chunk: Sendable, Equatable {
        /// How many sources were asked.
        var tries = 0
        var source: Source?
        /// While its seal is opened.
        var stored: Bytes?
        var plain: Bytes?
        var isHereUnsound = false
    }

    private let manifest: BodyManifest
    private let range: Range<UInt64>
    private let sources: [Source]
    private let limits: Limits
    private let deadline: MonotonicTime
    private var chunks: [UInt32: Chunk] = [:]
    private var nextToFetch: UInt32
    private var nextToSend: UInt32
    private let end: UInt32
    private var isOver = false

    /// - Parameters:
    ///   - range: of the plain bytes; within the body.
    ///   - sources: in the order in which they are asked, this node first if it is a member.
    package init(
        _ manifest: BodyManifest, _ range: Range<UInt64>, sources: [Source],
        deadline: MonotonicTime, limits: Limits = Limits()
    ) {
        self.manifest = manifest
        self.range = range
        self.sources = sources
        self.deadline = deadline
        self.limits = limits
        let ordinals = manifest.ordinals(covering: range)
        self.nextToFetch = ordinals.lowerBound
        self.nextToSend = ordinals.lowerBound
        self.end = ordinals.upperBound
    }

    // MARK: What happens

    /// Begins, or goes on: whoever sends says how many bytes more it takes, so nothing is read that
    /// nobody takes.
    package mutating func advance(sendsMore: Bool = true) -> [Action] {
        if self.isOver { return [] }
        if self.nextToSend == self.end {
            self.isOver = true
            return [.finished]
        }
        guard sendsMore else { return [] }
        var actions: [Action] = []
        while self.nextToFetch < self.end, self.chunks.count < self.limits.openCountMax {
            let ordinal = self.nextToFetch
            self.nextToFetch += 1
            self.chunks[ordinal] = Chunk()
            actions += self.ask(ordinal)
            if self.isOver { return actions }
        }
        return actions
    }

    /// A source answered. Nil: it has no such copy, or did not answer in time.
    package mutating func arrived(_ bytes: Bytes?, _ name: CopyName, from source: Source)
        -> [Action]
    {
        guard !self.isOver, name.body == self.manifest.body,
            var chunk = self.chunks[name.ordinal], chunk.source == source, chunk.stored == nil,
            chunk.plain == nil
        else { return [] }
        let expected = self.manifest.chunks[Int(name.ordinal)]
        guard let bytes, bytes.count == Int(expected.storedSize) else {
            chunk.isHereUnsound = chunk.isHereUnsound || source == .here
            self.chunks[name.ordinal] = chunk
            return self.ask(name.ordinal)
        }
        chunk.stored = bytes
        self.chunks[name.ordinal] = chunk
        return [.open(ordinal: name.ordinal, bytes)]
    }

    /// The seal of a chunk was opened. Nil: it was not sealed for this place.
    package mutating func opened(_ plain: Bytes?, _ ordinal: UInt32) -> [Action] {
        guard !self.isOver, var chunk = self.chunks[ordinal], let stored = chunk.stored else {
            return []
        }
        chunk.stored = nil
        guard let plain, plain.count == Int(self.manifest.plainSize(of: ordinal)) else {
            chunk.isHereUnsound = chunk.isHereUnsound || chunk.source == .here
            self.chunks[ordinal] = chunk
            return self.ask(ordinal)
        }
        chunk.plain = plain
        self.chunks[ordinal] = chunk
        var actions: [Action] = []
        if chunk.isHereUnsound, chunk.source != .here {
            actions.append(.repair(self.manifest.name(of: ordinal), stored))
        }
        while let ready = self.chunks[self.nextToSend]?.plain {
            actions.append(.send(self.part(of: ready, self.nextToSend)))
            self.chunks[self.nextToSend] = nil
            self.nextToSend += 1
        }
        return actions + (self.nextToSend == self.end ? self.advance() : [])
    }

    package mutating func tick(_ now: MonotonicTime) -> [Action] {
        !self.isOver && now >= self.deadline ? self.fail(.deadline) : []
    }

    package mutating func cancel() -> [Action] { self.isOver ? [] : self.fail(.cancelled) }

    /// Chunks in memory.
    package var openCount: Int { self.chunks.count }

    // MARK: What follows

    private mutating func ask(_ ordinal: UInt32) -> [Action] {
        guard var chunk = self.chunks[ordinal] else { return [] }
        let name = self.manifest.name(of: ordinal)
        guard chunk.tries < self.sources.count * self.limits.roundsMax else {
            return self.fail(.absent(name))
        }
        let source = self.sources[chunk.tries % self.sources.count]
        chunk.tries += 1
        chunk.source = source
        self.chunks[ordinal] = chunk
        return [.fetch(name, from: source)]
    }

    /// The part of a chunk's bytes that lies in the range.
    private func part(of plain: Bytes, _ ordinal: UInt32) -> Bytes {
        let start = UInt64(ordinal) * UInt64(self.manifest.chunkSize)
        let end = start + UInt64(plain.count)
        if self.range.lowerBound <= start, end <= self.range.upperBound { return plain }
        let first = Int(max(self.range.lowerBound, start) - start)
        let last = Int(min(self.range.upperBound, end) - start)
        return Bytes(plain[first..<last])
    }

    private mutating func fail(_ failure: Failure) -> [Action] {
        self.isOver = true
        self.chunks = [:]
        return [.failed(failure)]
    }
}
