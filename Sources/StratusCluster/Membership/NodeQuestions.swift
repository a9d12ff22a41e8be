package import StratusModel
import StratusPlacement

/// Answers what other nodes ask this one.
package struct NodeQuestions: Sendable {
    private let directory: ClusterDirectory
    private let replicas: any MemberReplicas
    private let follower: ClusterFollower
    private let health: @Sendable () async -> NodeHealth
    private let polls: @Sendable (NodeQuestion) -> Void
    private let support: @Sendable () async -> [SupportFile]
    /// The executor for background work; nil for the default one.
    private let executor: (any TaskExecutor)?

    /// - Parameter polls: hears ``NodeQuestion/attend(node:databases:isWhole:)`` and
    ///   ``NodeQuestion/stirred(_:)``.
    package init(
        _ directory: ClusterDirectory, replicas: any MemberReplicas, follower: ClusterFollower,
        on executor: (any TaskExecutor)? = nil,
        polls: @escaping @Sendable (NodeQuestion) -> Void = { _ in },
        support: @escaping @Sendable () async -> [SupportFile] = { [] },
        health: @escaping @Sendable () async -> NodeHealth
    ) {
        self.directory = directory
        self.replicas = replicas
        self.follower = follower
        self.health = health
        self.polls = polls
        self.support = support
        self.executor = executor
    }

    package func answer(_ body: Bytes) async -> PeerResponse.Answer {
        guard let question = try? NodeQuestion(decoding: body) else {
            return .refused("this build does not know the question")
        }
        return .answer(QueryAnswer(body: await self.reply(to: question).encoded()))
    }

    package func reply(to question: NodeQuestion) async -> NodeReply {
        switch question {
        case .view(let known):
            let view = self.directory.view
            let revision = view.settings.revision
            return .view(revision: revision, revision > known ? view : nil)
        case .observe(let groups):
            await self.replicas.wake(groups)
            return .observed(await self.replicas.observations())
        case .configure(let group, let index, let voters, let learners):
            return .done(
                await self.replicas.configure(
                    group, at: index, voters: voters, learners: learners))
        case .transfer(let group, let node):
            return .done(await self.replicas.transfer(group, to: node))
        case .changed(let revision):
            // The sender of this notice does not wait until it is followed.
            let follower = self.follower
            Task(executorPreference: self.executor) { await follower.heard(of: revision) }
            return .done(true)
        case .health: return .health(await self.health())
        case .offer(let view):
            await self.follower.take(view)
            return .done(true)
        case .attend, .stirred:
            self.polls(question)
            return .done(true)
        case .support: return .support(await self.support())
        case .remains: return .remains(await self.replicas.nodeRemains())
        }
    }
}
