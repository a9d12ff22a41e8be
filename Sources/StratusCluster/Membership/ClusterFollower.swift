import StratusModel
package import StratusPlacement
import StratusStorage
import Synchronization

/// Makes a node follow the cluster's present shape: finds out that the view has changed, and adapts
/// links, heartbeats and replicas. Steps run one after the other; each may be repeated.
package actor ClusterFollower {
    /// The effects of a change on the rest of the node. Called in the order of the views.
    package struct Events: Sendable {
        package var changed: @Sendable (ClusterView) -> Void = { _ in }
        package var trouble: @Sendable (String) -> Void = { _ in }
        package init() {}
    }

    /// A node that holds the system partition looks at its own copy; another asks one that does.
    private static let lookInterval = Duration.milliseconds(500)
    private static let askInterval = Duration.seconds(2)
    private static let patience = Duration.seconds(1)

    private let directory: ClusterDirectory
    private let replicas: any MemberReplicas
    private let router: ClusterRouter
    private let events: Events
    private let sleep: @Sendable (Duration) async -> Void
    /// The executor for background work; nil for the default one.
    private let executor: (any TaskExecutor)?
    private var isWorking = false
    private var wantsAgain = false
    private var askCount = 0
    /// Looks by ``run()``, of which one in so many asks another node whatever the own copy says.
    private var lookCount = 0
    private static let looksPerAsk = 4
    private var mustAsk = false
    /// The newest view that somebody has spoken of.
    private var heardOf: UInt64 = 0
    private var offered: ClusterView?
    /// The number the next notice would have got when the own copy was last read.
    private var noticeSeen: UInt64?
    /// Groups whose files are still to be removed.
    private var leaving: Set<GroupID> = []
    /// The revision already followed; at first that of the view the node began with.
    private var applied: UInt64

    package init(
        _ directory: ClusterDirectory, replicas: any MemberReplicas, router: ClusterRouter,
        events: Events, on executor: (any TaskExecutor)? = nil,
        sleep: @escaping @Sendable (Duration) async -> Void
    ) {
        self.directory = directory
        self.replicas = replicas
        self.router = router
        self.events = events
        self.sleep = sleep
        self.executor = executor
        self.applied = directory.revision
    }

    /// Until cancelled.
    package func run() async {
        await self.finishDeleting()
        while !Task.isCancelled {
            self.lookCount += 1
            if self.lookCount % Self.looksPerAsk == 0 { self.mustAsk = true }
            await self.look()
            let holdsIt = self.directory.keeps(.system)
            await self.sleep(holdsIt ? Self.lookInterval : Self.askInterval)
        }
    }

    /// Somebody says that there is a view of this revision.
    package func heard(of revision: UInt64) async {
        self.heardOf = max(self.heardOf, revision)
        if revision > self.directory.revision { await self.look() }
    }

    /// A member says that this is the view now, unasked.
    package func take(_ view: ClusterView) async {
        self.offered = view
        await self.look()
    }

    /// Looks for a newer view and follows it. Returns once every change that was visible has been
    /// followed.
    package func look() async {
        if self.isWorking {
            self.wantsAgain = true
            return
        }
        self.isWorking = true
        defer { self.isWorking = false }
        repeat {
            self.wantsAgain = false
            if let view = await self.newer() {
                do throws(DiskError) {
                    let before = self.directory.view
                    if try self.directory.adopt(view) {
                        self.tellOthers(view)
                        await self.tellRemoved(before, view)
                    }
                } catch {
                    self.noticeSeen = nil
                    self.events.trouble("a newer view of the cluster cannot be written: \(error)")
                }
            }
            await self.follow()
        } while self.wantsAgain && !Task.isCancelled
    }

    // MARK: Finding out

    private func newer() async -> ClusterView? {
        let known = self.directory.revision
        if let view = self.offered {
            self.offered = nil
            if view.settings.revision > known { return view }
        }
        if self.directory.keeps(.system) {
            // A few bytes, most of the time: the feed says whether anything has changed at all.
            if let view = await self.peek(newerThan: known) { return view }
            // A replica that is still being filled knows less than its peers. One that was dropped
            // from the group hears nothing any more, not even of that.
            let leader = self.replicas.leader(of: .system)
            let isBehind = self.heardOf > known || self.mustAsk
            if leader == self.directory.own || (leader != nil && !isBehind) { return nil }
        }
        self.mustAsk = false
        let holders = self.directory.view.systemReplicas.filter { $0 != self.directory.own }
        guard !holders.isEmpty else { return nil }
        self.askCount += 1
        var asked = [holders[self.askCount % holders.count]]
        if let leader = self.replicas.leader(of: .system), holders.contains(leader) {
            asked.insert(leader, at: 0)
        }
        for node in asked {
            let reply = await self.router.ask(
                .view(newerThan: known), of: node, within: Self.patience)
            if case .view(_, let view)? = reply { return view }
        }
        return nil
    }

    private func peek(newerThan known: UInt64) async -> ClusterView? {
        let feed = Query(
            kind: .system, body: SystemQuery.notices(after: .max, limit: 0).encoded())
        guard let answer = await self.replicas.peek(feed, in: .system),
            case .notices(let page)? = try? SystemAnswer(decoding: answer.body),
            page.next != self.noticeSeen
        else { return nil }
        self.noticeSeen = page.next
        let query = Query(kind: .system, body: SystemQuery.view.encoded())
        guard let answer = await self.replicas.peek(query, in: .system),
            case .view(let view?)? = try? SystemAnswer(decoding: answer.body),
            view.settings.revision > known
        else { return nil }
        return view
    }

    /// Tells all others of the view, if this node leads the system group, so that they need not
    /// wait for their next look.
    private func tellOthers(_ view: ClusterView) {
        guard self.replicas.leader(of: .system) == self.directory.own else { return }
        let (router, own, revision) = (self.router, self.directory.own, view.settings.revision)
        for node in view.nodes where node.isMember && node.id != own {
            Task(executorPreference: self.executor) {
                _ = await router.ask(
                    .changed(revision: revision), of: node.id, within: Self.patience)
            }
        }
    }

    /// Before its links are cut: so that it knows why.
    private func tellRemoved(_ before: ClusterView, _ now: ClusterView) async {
        guard self.replicas.leader(of: .system) == self.directory.own else { return }
        for node in now.nodes where !node.isMember && before.node(node.id)?.isMember == true {
            _ = await self.router.ask(.offer(now), of: node.id, within: Self.patience)
        }
    }

    // MARK: Following

    private func follow() async {
        let view = self.directory.view
        if self.applied != view.settings.revision {
            self.applied = view.settings.revision
            self.events.changed(view)
            await self.replicas.setPeers(self.directory.peers.map(\.node))
        }
        let directory = self.directory
        self.leaving.formUnion(await self.replicas.retire { directory.keeps($0) })
        await self.delete()
    }

    /// Deletes the replicas that the last process did not get to.
    private func finishDeleting() async {
        // Until that is over no newer view may bring a replica back.
        self.isWorking = true
        defer { self.isWorking = false }
        let view = self.directory.view
        let kept = Set(view.groups(keptBy: self.directory.own))
        self.leaving = Set(view.groups.filter { !kept.contains($0) })
        let directory = self.directory
        _ = await self.replicas.retire { directory.keeps($0) }
        await self.delete()
    }

    private func delete() async {
        // Replicas that could not be deleted and have come back since are in use.
        let directory = self.directory
        self.leaving = self.leaving.filter { !directory.keeps($0) }
        guard !self.leaving.isEmpty else { return }
        do throws(StoreError) {
            try await self.replicas.discard(self.leaving.sorted())
            self.leaving = []
        } catch { self.events.trouble("a replica that moved away cannot be deleted: \(error)") }
    }
}
