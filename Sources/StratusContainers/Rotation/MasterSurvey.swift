package import StratusIdentity
package import StratusModel

/// Goes through the keys of all containers: counts what each master key wraps, wraps anew, and
/// forgets a master key that wraps nothing.
///
/// Each call does a slice, in the order of the containers' names. It says the last name it saw, and
/// the next call goes on behind that. So containers that come or go meanwhile make it skip none.
package struct MasterSurvey: Sendable {
    package static let sliceCount = 100

    package struct Failing: Sendable, Equatable {
        package var container: ContainerReference
        package var reason: String

        package init(container: ContainerReference, reason: String) {
            self.container = container
            self.reason = reason
        }
    }

    package struct Counts: Sendable, Equatable {
        /// Containers whose keys are wrapped under a master key, by version.
        package var wrapped: [UInt32: Int] = [:]
        package var withoutKey = 0
        /// Those whose key does not open on this node.
        package var failing: [Failing] = []
        /// Nil: there are no more.
        package var next: ContainerReference?
    }

    package struct Rotation: Sendable, Equatable {
        package var wrapped = 0
        /// Those that were left as they are.
        package var failing: [Failing] = []
        package var next: ContainerReference?
    }

    package enum Forgetting: Sendable, Equatable {
        /// What was begun under that version may still arrive for so long: ask again then.
        case settles(milliseconds: Int64)
        /// The slice has nothing under that version.
        case goesOn(after: ContainerReference)
        case forgotten
        /// No node has noted that version.
        case unknown
        /// This node wraps under it.
        case seals
        /// It wraps this container's key.
        case wraps(ContainerReference)
        /// Nobody can say now what wraps this container's key.
        case unreadable(ContainerReference, String)
    }

    private let registry: ContainerRegistry
    private let keys: ContainerKeys
    private let slice: Int
    private let retries: Retries

    package init(
        _ registry: ContainerRegistry, _ keys: ContainerKeys, slice: Int = Self.sliceCount,
        retries: Retries = Retries()
    ) {
        self.retries = retries
        self.registry = registry
        self.keys = keys
        self.slice = slice
    }

    private func page(after last: ContainerReference?) async throws(RouteError) -> (
        containers: [ContainerReference], next: ContainerReference?
    ) {
        let containers = try await self.registry.page(after: last, limit: self.slice)
        return (containers, containers.count == self.slice ? containers.last : nil)
    }

    /// A partition that does not answer says nothing of its container's key, and keeps no other
    /// from being looked at.
    private func state(of container: ContainerReference) async -> ContainerKeys.State {
        do {
            return try await self.retries.run { [keys] in try await keys.state(of: container) }
        } catch {
            return .closed(master: nil, reason: (error as? RouteError)?.reason ?? "\(error)")
        }
    }

    package func count(after last: ContainerReference?) async throws(RouteError) -> Counts {
        var counts = Counts()
        let (containers, next) = try await self.page(after: last)
        counts.next = next
        for container in containers {
            switch await self.state(of: container) {
            case .none: counts.withoutKey += 1
            case .wrapped(let version): counts.wrapped[version, default: 0] += 1
            case .closed(let version, let reason):
                if let version { counts.wrapped[version, default: 0] += 1 }
                counts.failing.append(Failing(container: container, reason: reason))
            }
        }
        return counts
    }

    /// Wraps keys under the master key that seals. What fails is noted, and the others go on.
    ///
    /// - Throws: before anything was wrapped, where this node may not wrap under that key.
    package func rotate(after last: ContainerReference?) async throws(RouteError) -> Rotation {
        try await self.keys.agreement.require(self.keys.sealing)
        var rotation = Rotation()
        let (containers, next) = try await self.page(after: last)
        rotation.next = next
        for container in containers {
            do throws(RouteError) {
                if try await self.keys.wrapAnew(container) { rotation.wrapped += 1 }
            } catch {
                rotation.failing.append(Failing(container: container, reason: error.reason))
            }
        }
        return rotation
    }

    /// Forgets which key a version is, once every slice has been seen to have nothing under it.
    ///
    /// - Parameter last: nil: begins. Nobody on any node wraps under the version from then on,
    ///   unless something is found under it.
    package func forget(_ version: UInt32, after last: ContainerReference?)
        async throws(RouteError) -> Forgetting
    {
        if version == self.keys.sealing { return .seals }
        switch try await self.keys.agreement.leave(version) {
        case .unknown: return .unknown
        case .settles(let milliseconds): return .settles(milliseconds: milliseconds)
        case .settled: break
        }
        let (containers, next) = try await self.page(after: last)
        for container in containers {
            let found: Forgetting
            switch await self.state(of: container) {
            case .none: continue
            case .wrapped(let under), .closed(let under?, _):
                if under != version { continue }
                found = .wraps(container)
            case .closed(nil, let reason): found = .unreadable(container, reason)
            }
            try await self.keys.agreement.keep(version)
            return found
        }
        if let next { return .goesOn(after: next) }
        return try await self.keys.agreement.free(version) ? .forgotten : .unknown
    }
}
