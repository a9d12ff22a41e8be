package import StratusModel

/// Who has places of a node: a user of a container, or an address.
package struct PlaceHolder: Sendable, Hashable {
    /// Nil where nobody knows it: an address asks.
    package var container: ContainerReference?
    /// The same text is the same user or address, whatever the container.
    package var name: String

    package init(_ container: ContainerReference?, _ name: String) {
        self.container = container
        self.name = name
    }
}

/// How many places of one kind there are, and how many of them are whose share.
package struct PlaceBounds: Sendable, Equatable {
    package var total: Int
    /// The share of a container is this part of all places. It is less where more containers have
    /// places.
    package var containerPart: Int
    /// The share of a user or address.
    package var share: Int
    /// What no user or address may have more of, even while there is room.
    package var most: Int?
    /// For a kind that nobody gives up: so many places are kept for those below their share. Nil:
    /// places are given up.
    package var kept: Int?

    package init(
        total: Int, containerPart: Int = 8, share: Int, most: Int? = nil, kept: Int? = nil
    ) {
        precondition(total >= 0 && containerPart > 0 && share >= 0)
        self.total = total
        self.containerPart = containerPart
        self.share = share
        self.most = most
        self.kept = kept
    }
}

/// What is told of the places of one kind.
package struct PlaceFigures: Sendable {
    /// A label of the metrics.
    package let kind: String
    package let size: @Sendable () -> Int
    package let endedCount: @Sendable () -> UInt64

    package init(
        kind: String, size: @escaping @Sendable () -> Int,
        endedCount: @escaping @Sendable () -> UInt64
    ) {
        self.kind = kind
        self.size = size
        self.endedCount = endedCount
    }
}

/// The places of one kind at a node, and who has them.
///
/// While there is room, anybody may have more than a share. When there is none, a newcomer below
/// its share takes a place from whoever is furthest above the same share: from the largest
/// container, or where the newcomer's own is at its share, from the largest user of that. The
/// oldest place gives way. So whoever is below the share is never refused.
///
/// Equal shares of what is contested make that true: of *n* containers each has at most the *n*th
/// part. If all were at their part or below, there would be room.
///
/// Of a kind that nobody gives up, some places are kept for newcomers below their share.
package struct Places: Sendable {
    package enum Refusal: Error, Sendable, Equatable {
        /// There is no room, and the newcomer has its share.
        case full
        /// The newcomer has as much as anybody may.
        case most
    }

    package struct Entrance: Sendable, Equatable {
        package let number: UInt64
        /// The places that gave way, in this order. They are left already.
        package let ended: [UInt64]
    }

    private struct User {
        /// Grows with each user that comes: the earlier one of two is known by it.
        let number: UInt64
        var size = 0
        var places: [UInt64: Int] = [:]
        /// The places in the order in which they were taken; some are left already.
        private var order: [UInt64] = []
        /// All before are left.
        private var start = 0

        init(number: UInt64) { self.number = number }

        mutating func put(_ place: UInt64, _ size: Int) {
            self.size += size
            self.places[place] = size
            self.order.append(place)
            if self.order.count > 2 * self.places.count + 16 {
                self.order = self.order[self.start...].filter { self.places[$0] != nil }
                self.start = 0
            }
        }

        mutating func oldest() -> UInt64? {
            while self.start < self.order.count {
                let place = self.order[self.start]
                if self.places[place] != nil { return place }
                self.start += 1
            }
            return nil
        }
    }

    private struct Container {
        let number: UInt64
        var size = 0
        var users: [String: User] = [:]
        var usersBySize = LargestFirst<String>()
    }

    private var containers: [ContainerReference?: Container] = [:]
    private var containersBySize = LargestFirst<ContainerReference?>()
    /// What each name has in all containers.
    private var sizes: [String: Int] = [:]
    private var holders: [UInt64: PlaceHolder] = [:]
    private var last: UInt64 = 0
    package private(set) var size = 0

    package init() {}

    package var count: Int { self.holders.count }

    package func size(of holder: PlaceHolder) -> Int {
        self.containers[holder.container]?.users[holder.name]?.size ?? 0
    }

    package func size(of container: ContainerReference?) -> Int {
        self.containers[container]?.size ?? 0
    }

    /// - Parameter size: how many places it takes, at least one. Where that is more than its
    ///   container's share, it takes as many as that: it would be refused for good.
    package mutating func enter(
        _ holder: PlaceHolder, size: Int = 1, within bounds: PlaceBounds
    ) throws(Refusal) -> Entrance {
        precondition(size > 0)
        let share = self.containerShare(for: holder, within: bounds)
        let size = bounds.kept == nil ? min(size, max(1, share)) : size
        let own = self.sizes[holder.name] ?? 0
        if let most = bounds.most, own + size > most { throw .most }
        if let kept = bounds.kept {
            let isBelow =
                own + size <= bounds.share
                && self.size(of: holder.container) + size
                    <= share
            guard self.size + size <= (isBelow ? bounds.total : bounds.total - kept) else {
                throw .full
            }
        }
        // Where a reload has made them fewer, what is there stays.
        let total = max(bounds.total, self.size)
        var ended: [UInt64] = []
        if self.size + size > total {
            guard bounds.kept == nil, own + size <= bounds.share,
                let source = self.source(for: holder, size: size, within: bounds)
            else { throw .full }
            while self.size + size > total { ended.append(self.end(in: source)) }
        }
        self.last += 1
        self.put(self.last, size, of: holder)
        return Entrance(number: self.last, ended: ended)
    }

    /// Does nothing for a place that has given way.
    package mutating func leave(_ number: UInt64) {
        guard let holder = self.holders.removeValue(forKey: number),
            let size = self.containers[holder.container]?.users[holder.name]?.places
                .removeValue(forKey: number)
        else { return }
        self.size -= size
        let left = (self.sizes[holder.name] ?? 0) - size
        self.sizes[holder.name] = left > 0 ? left : nil
        self.containers[holder.container]?.size -= size
        self.containers[holder.container]?.users[holder.name]?.size -= size
        if self.containers[holder.container]?.users[holder.name]?.places.isEmpty == true {
            self.containers[holder.container]?.users[holder.name] = nil
        }
        if self.containers[holder.container]?.users.isEmpty == true {
            self.containers[holder.container] = nil
        }
        self.order(holder)
    }

    /// Puts the holder's user and container where their sizes belong.
    private mutating func order(_ holder: PlaceHolder) {
        let container = self.containers[holder.container].map { ($0.number, $0.size) }
        guard let container else { return self.containersBySize.remove(holder.container) }
        self.containersBySize.set(holder.container, container.0, to: container.1)
        let user = self.containers[holder.container]?.users[holder.name].map {
            ($0.number, $0.size)
        }
        if let user {
            self.containers[holder.container]?.usersBySize.set(holder.name, user.0, to: user.1)
        } else {
            self.containers[holder.container]?.usersBySize.remove(holder.name)
        }
    }

    private mutating func put(_ number: UInt64, _ size: Int, of holder: PlaceHolder) {
        self.holders[number] = holder
        self.size += size
        self.sizes[holder.name, default: 0] += size
        self.containers[holder.container, default: Container(number: number)].size += size
        self.containers[holder.container]?.users[holder.name, default: User(number: number)]
            .put(number, size)
        self.order(holder)
    }

    // MARK: Who gives way

    private enum Source {
        case largestContainer
        case largestUser(of: ContainerReference?)
    }

    /// Where a newcomer's places come from. Nil: it has its share.
    private func source(
        for holder: PlaceHolder, size: Int, within bounds: PlaceBounds
    ) -> Source? {
        let container = self.containers[holder.container]
        if (container?.size ?? 0) + size <= self.containerShare(for: holder, within: bounds) {
            return .largestContainer
        }
        guard let container else { return nil }
        let user = container.users[holder.name]
        let userShare = container.size / (container.users.count + (user == nil ? 1 : 0))
        return (user?.size ?? 0) + size <= userShare ? .largestUser(of: holder.container) : nil
    }

    /// The share of the newcomer's container. That container counts, whether it has places or not.
    private func containerShare(for holder: PlaceHolder, within bounds: PlaceBounds) -> Int {
        let count = self.containers.count + (self.containers[holder.container] == nil ? 1 : 0)
        return bounds.total / max(bounds.containerPart, count)
    }

    /// Ends the oldest place of whoever has most. Of two who have as much, the one that came first.
    private mutating func end(in source: Source) -> UInt64 {
        let container =
            switch source {
            case .largestUser(let container): container
            case .largestContainer: self.containersBySize.first ?? nil
            }
        guard let user = self.containers[container]?.usersBySize.first,
            let oldest = self.containers[container]?.users[user]?.oldest()
        else { preconditionFailure("whoever is above a share has a place") }
        self.leave(oldest)
        return oldest
    }
}
