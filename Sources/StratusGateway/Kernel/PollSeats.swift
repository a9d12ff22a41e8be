import StratusCluster
import StratusModel
import StratusRuntime
import Synchronization

/// The polls that wait at this node: one for each token, and which databases wake them.
///
/// A poll that follows another of its token takes its seat: the older one is told to end, and the
/// newer one begins when the older one has. What the older one delivered is then settled, so the
/// newer one does not deliver it again.
final class PollSeats: Sendable {
    private struct Place {
        /// A newer poll has come, or the place went to another.
        var isTold = false
        /// Something may have changed since it last looked.
        var isWoken = false
        var waiter: CheckedContinuation<Void, Never>?
        /// When it has slept for long enough.
        var timer: TimerQueue<Bytes>.Token?
        var databases: Set<DatabaseID> = []
        /// The questions that one look takes.
        var questionCount = 0
        /// Has the seat next.
        var next: CheckedContinuation<Bool, Never>?
    }

    /// The task that sleeps until the first timer. One for all of them: ten thousand sleeping tasks
    /// would take more memory than their polls.
    private struct Alarm {
        var number: UInt64
        var time: MonotonicTime
        var task: Task<Void, Never>
    }

    private struct State {
        var places: [Bytes: Place] = [:]
        var timers = TimerQueue<Bytes>()
        var alarm: Alarm?
        var alarmCount: UInt64 = 0
        var watchers: [DatabaseID: Set<Bytes>] = [:]
        /// Until when the many polls of a database are left alone.
        var rests: [DatabaseID: MonotonicTime] = [:]
        /// The databases that are watched, by their names among nodes.
        var named: [UInt64: DatabaseID] = [:]
        /// The questions of all places.
        var watchCount = 0

        mutating func unwatch(_ token: Bytes, _ databases: Set<DatabaseID>) {
            for database in databases {
                self.watchers[database]?.remove(token)
                guard self.watchers[database]?.isEmpty == true else { continue }
                self.watchers[database] = nil
                self.rests[database] = nil
                self.named[Attendance.name(of: database)] = nil
            }
        }
    }

    private let state = Mutex(State())
    private let observer = Mutex<(any PollObserver)?>(nil)

    /// The number of polls that have a seat.
    var count: Int { self.state.withLock { $0.places.count } }

    /// The questions that one look of all of them takes.
    var watchCount: Int { self.state.withLock { $0.watchCount } }

    /// Those of them that have been woken and have not looked yet.
    var wokenCount: Int { self.state.withLock { $0.places.values.count { $0.isWoken } } }

    /// Takes the seat of a token, once the poll before it has ended. Nil: a still newer one came.
    func take(_ token: Bytes) async -> PollSeat? {
        let isMine = await withCheckedContinuation { continuation in
            let (waiter, other, isFree) = self.state.withLock { state in
                guard var place = state.places[token] else {
                    state.places[token] = Place()
                    return (
                        nil as CheckedContinuation<Void, Never>?,
                        nil as CheckedContinuation<Bool, Never>?, true
                    )
                }
                let waiter = place.waiter.take()
                let other = place.next
                place.isTold = true
                place.next = continuation
                state.places[token] = place
                return (waiter, other, false)
            }
            waiter?.resume()
            other?.resume(returning: false)
            if isFree { continuation.resume(returning: true) }
        }
        return isMine ? PollSeat(token, of: self) : nil
    }

    /// Whom to tell of what is watched and of what changes here.
    func observe(_ observer: any PollObserver) { self.observer.withLock { $0 = observer } }

    /// The names of all databases that are watched.
    var watched: [UInt64] { self.state.withLock { $0.named.keys.sorted() } }

    /// A database has changed by way of this node.
    func changed(_ database: DatabaseID, at now: MonotonicTime) {
        self.stirred(database, at: now)
        self.observer.withLock { $0 }?.stirred(Attendance.name(of: database))
    }

    /// One has changed by way of another node.
    func stirred(_ name: UInt64, at now: MonotonicTime) {
        guard let database = self.state.withLock({ $0.named[name] }) else { return }
        self.stirred(database, at: now)
    }

    /// So many polls are woken at each change of a database. Of more, each look is paid for by a
    /// pause, so that many pages and many saves do not multiply.
    static let freeWatcherCount = 32
    static let pausePerWatcher: Duration = .microseconds(500)

    /// The database has changed: whoever follows it looks again. Who is not woken finds the change
    /// at its next look.
    func stirred(_ database: DatabaseID, at now: MonotonicTime) {
        let waiters = self.state.withLock { state -> [CheckedContinuation<Void, Never>] in
            let count = state.watchers[database]?.count ?? 0
            if count > Self.freeWatcherCount {
                guard now >= state.rests[database] ?? now else { return [] }
                state.rests[database] = now + Self.pausePerWatcher * count
            }
            return (state.watchers[database] ?? []).compactMap { token in
                state.places[token]?.isWoken = true
                return state.places[token]?.waiter.take()
            }
        }
        for waiter in waiters { waiter.resume() }
    }

    fileprivate func leave(_ token: Bytes) {
        let next = self.state.withLock { state in
            let place = state.places.removeValue(forKey: token)
            state.watchCount -= place?.questionCount ?? 0
            state.unwatch(token, place?.databases ?? [])
            if place?.next != nil { state.places[token] = Place() }
            return place?.next
        }
        next?.resume(returning: true)
    }

    fileprivate func watch(
        _ token: Bytes, _ databases: Set<DatabaseID>, questionCount: Int
    ) {
        let new = self.state.withLock { state -> [UInt64] in
            guard let place = state.places[token] else { return [] }
            let before = place.databases
            state.watchCount += questionCount - place.questionCount
            state.places[token]?.questionCount = questionCount
            if before == databases { return [] }
            state.unwatch(token, before)
            var new: [UInt64] = []
            for database in databases {
                state.watchers[database, default: []].insert(token)
                let name = Attendance.name(of: database)
                if state.named.updateValue(database, forKey: name) == nil { new.append(name) }
            }
            state.places[token]?.databases = databases
            return new.sorted()
        }
        if !new.isEmpty { self.observer.withLock { $0 }?.watched(new) }
    }

    fileprivate func isTold(_ token: Bytes) -> Bool {
        self.state.withLock { $0.places[token]?.isTold ?? true }
    }

    fileprivate func end(_ token: Bytes) {
        self.state.withLock { state in
            state.places[token]?.isTold = true
            return state.places[token]?.waiter.take()
        }?.resume()
    }

    fileprivate func wake(_ token: Bytes) {
        self.state.withLock { state in
            state.places[token]?.isWoken = true
            return state.places[token]?.waiter.take()
        }?.resume()
    }

    /// Waits until it is woken, for which it may have been already, or until `time`.
    fileprivate func sleep(_ token: Bytes, until time: MonotonicTime) async {
        await withCheckedContinuation { continuation in
            let isOver = self.state.withLock { state in
                guard let place = state.places[token], !place.isTold, !place.isWoken else {
                    return true
                }
                state.places[token]?.waiter = continuation
                state.places[token]?.timer = state.timers.insert(at: Self.tick(time), token)
                return false
            }
            if isOver { continuation.resume() } else { self.setAlarm() }
        }
        self.state.withLock { state in
            state.places[token]?.isWoken = false
            if let timer = state.places[token]?.timer.take() { state.timers.remove(timer) }
        }
    }

    // MARK: Timers

    /// Timers that end at about the same time end together.
    private static let tickLength: Int64 = 20_000_000

    private static func tick(_ time: MonotonicTime) -> MonotonicTime {
        let ticks = (time.nanoseconds + Self.tickLength - 1) / Self.tickLength
        return MonotonicTime(nanoseconds: ticks * Self.tickLength)
    }

    /// Sees to it that somebody wakes up for the first timer.
    private func setAlarm() {
        self.state.withLock { state in
            guard let first = state.timers.first else { return }
            if let alarm = state.alarm, alarm.time <= first { return }
            state.alarm?.task.cancel()
            state.alarmCount += 1
            let number = state.alarmCount
            let task = Task { [weak self] in
                try? await Task.sleep(for: first - RealClock.now)
                self?.ring(number)
            }
            state.alarm = Alarm(number: number, time: first, task: task)
        }
    }

    private func ring(_ number: UInt64) {
        let waiters = self.state.withLock { state -> [CheckedContinuation<Void, Never>] in
            // An earlier alarm has taken the place of this one.
            guard state.alarm?.number == number else { return [] }
            state.alarm = nil
            var waiters: [CheckedContinuation<Void, Never>] = []
            let now = RealClock.now
            while let token = state.timers.popDue(at: now) {
                state.places[token]?.timer = nil
                state.places[token]?.isWoken = true
                if let waiter = state.places[token]?.waiter.take() { waiters.append(waiter) }
            }
            return waiters
        }
        for waiter in waiters { waiter.resume() }
        self.setAlarm()
    }
}

/// The seat of one poll. It is left when its answer has been taken, or will not be.
final class PollSeat: Sendable {
    private let token: Bytes
    private let owner: PollSeats

    fileprivate init(_ token: Bytes, of owner: PollSeats) {
        self.token = token
        self.owner = owner
    }

    deinit { self.owner.leave(self.token) }

    /// Whether to answer now: a newer poll has come, or the place went to another.
    var isTold: Bool { self.owner.isTold(self.token) }

    /// The place went to another.
    func end() { self.owner.end(self.token) }

    /// - Parameter questionCount: what one look asks: more than one where a stream follows many
    ///   zones of a database.
    func watch(_ databases: Set<DatabaseID>, questionCount: Int? = nil) {
        self.owner.watch(
            self.token, databases,
            questionCount: max(questionCount ?? databases.count, databases.count))
    }

    /// Returns when a database may have changed, when a newer poll comes, when the task is
    /// cancelled, or after `patience`.
    func wait(for patience: Duration) async {
        await withTaskCancellationHandler {
            await self.owner.sleep(self.token, until: RealClock.now + patience)
        } onCancel: {
            self.owner.wake(self.token)
        }
    }
}

/// Hears of what other nodes should know. Returns at once.
package protocol PollObserver: AnyObject, Sendable {
    /// Polls wait for databases that none waited for before.
    func watched(_ databases: [UInt64])
    /// A database has changed by way of this node.
    func stirred(_ database: UInt64)
}
