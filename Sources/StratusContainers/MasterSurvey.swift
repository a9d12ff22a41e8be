package import StratusCluster
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
        /// The slice has nothing under that version.
        case goesOn(after: ContainerReference)
        case forgotten
        /// No node has noted that version.
        case unknown
        /// This node wraps under it.
        case seals
        /// It wraps this container's key.
        case wraps(ContainerReference)
        /// Nobody can say what wraps this container's key.
        case unreadable(ContainerReference, String)
    }

    private let registry: ContainerRegistry
    private let keys: ContainerKeys
    private let slice: Int

    package init(
        _ registry: ContainerRegistry, _ keys: ContainerKeys, slice: Int = Self.sliceCount
    ) {
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

    package func count(after last: ContainerReference?) async throws(RouteError) -> Counts {
        var counts = Counts()
        let (containers, next) = try await self.page(after: last)
        counts.next = next
        for container in containers {
            switch try await self.keys.state(of: container) {
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
                let reason =
                    switch error {
                    case .refused(let reason): reason
                    case .notExecuted: "its partition does not answer: run it again"
                    case .outcomeUnknown: "it is not known whether it was wrapped: run it again"
                    case .upgrading: "the cluster is being upgraded"
                    }
                rotation.failing.append(Failing(container: container, reason: reason))
            }
        }
        return rotation
    }

    /// Forgets which key a version is, once every slice has been seen to have nothing under it.
    package func forget(_ version: UInt32, after last: ContainerReference?)
        async throws(RouteError) -> Forgetting
    {
        if version == self.keys.sealing { return .seals }
        let (containers, next) = try await self.page(after: last)
        for container in containers {
            switch try await self.keys.state(of: container) {
            case .none: continue
            case .wrapped(let under):
                if under == version { return .wraps(container) }
            case .closed(let under?, _):
                if under == version { return .wraps(container) }
            case .closed(nil, let reason): return .unreadable(container, reason)
            }
        }
        if let next { return .goesOn(after: next) }
        return try await self.keys.agreement.forget(version) ? .forgotten : .unknown
    }
}
