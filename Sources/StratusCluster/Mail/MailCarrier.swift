import StratusCoding
package import StratusModel

/// Carries the mail of the partitions that this node leads: a thin shell around ``MailCourier``.
///
/// It reads outboxes from the applied rows and sends by the client, like any command. It keeps
/// nothing. A process that dies anywhere in between leaves mail in its sender's rows, received or
/// not, and the next courier begins with those.
package struct MailCarrier: Sendable {
    /// After news, before the look: what is posted together leaves together.
    private static let breath = Duration.milliseconds(10)
    /// How long one delivery or release may take, looking for a leader included.
    private static let patience = Duration.seconds(5)

    private let replicas: NodeReplicas
    private let partitions: PartitionClient
    private let world: any World
    private let tuning: MailCourier.Tuning
    private let watch: MailWatch
    private let sleep: @Sendable (MonotonicTime) async -> Void
    private let alarm: @Sendable (MailRoute, MailCourier.Trouble) -> Void

    /// - Parameter sleep: returns at the given time, or early when cancelled.
    package init(
        replicas: NodeReplicas, partitions: PartitionClient, in world: any World,
        tuning: MailCourier.Tuning = MailCourier.Tuning(), watch: MailWatch = MailWatch(),
        alarm: @escaping @Sendable (MailRoute, MailCourier.Trouble) -> Void = { _, _ in },
        sleep: @escaping @Sendable (MonotonicTime) async -> Void
    ) {
        self.replicas = replicas
        self.partitions = partitions
        self.world = world
        self.tuning = tuning
        self.watch = watch
        self.alarm = alarm
        self.sleep = sleep
    }

    /// An event for the courier; nil only says that there is news.
    private typealias Report = MailCourier.Event?

    /// Carries until its task is cancelled.
    package func run() async {
        await withTaskGroup(of: Report.self) { tasks in
            var courier = MailCourier(tuning: self.tuning)
            var actions: [MailCourier.Action] = []
            tasks.addTask { nil }
            // The task group is the queue of events: nothing is half-changed across this.
            while let report = await tasks.next(), !Task.isCancelled {
                if let event = report {
                    if case .found(let group, let outbox) = event {
                        self.watch.saw(outbox, of: group)
                    }
                    courier.handle(event, at: self.world.now, into: &actions)
                } else {
                    let news = await self.replicas.groupsWithMailNews()
                    self.watch.lost(news.others)
                    for group in news.led {
                        courier.handle(.news(group), at: self.world.now, into: &actions)
                    }
                    tasks.addTask { await self.pause() }
                }
                self.watch.saw(failing: courier.failing)
                for action in actions {
                    if case .alarm(let route, let trouble) = action {
                        self.alarm(route, trouble)
                    } else {
                        tasks.addTask { await self.carryOut(action) }
                    }
                }
                actions.removeAll(keepingCapacity: true)
            }
            tasks.cancelAll()
        }
    }

    private func pause() async -> Report {
        await self.replicas.waitForMailNews()
        await self.sleep(self.world.now + Self.breath)
        return nil
    }

    private func carryOut(_ action: MailCourier.Action) async -> Report {
        switch action {
        case .look(let group, let ask):
            let answer = await self.replicas.peek(ask.enveloped(), in: group)
            return .found(group, answer.flatMap { try? Outbox(decoding: $0.body) })
        case .deliver(let bag):
            return .delivered(
                bag.route, await self.submit(.deliver(bag), to: bag.route.receiver))
        case .release(let receipt):
            return .released(
                receipt.route, await self.submit(.release(receipt), to: receipt.route.sender))
        case .wake(let time):
            await self.sleep(time)
            return .woke
        case .alarm: return nil
        }
    }

    /// - Returns: nil when it is not known what became of it.
    private func submit(_ mail: MailCommand, to group: GroupID) async -> MailOutcome? {
        do throws(RouteError) {
            return try await self.partitions.submit(
                mail, at: .group(group), as: .system(), within: Self.patience)
        } catch {
            // What the two cannot read of each other waiting does not cure.
            if case .unreadable = error { return .refused }
            return nil
        }
    }
}
