import StratusDoubles
import StratusModel
import StratusPush
import StratusRecords

// The lanes of one process and what simulated providers answer.
extension PushShells {
    private static var laneBounds: PushLane.Bounds {
        var bounds = PushLane.Bounds()
        bounds.flightCountMax = 3
        bounds.queueCountMax = 4
        bounds.answerDeadline = .seconds(1)
        bounds.connectDeadline = .seconds(1)
        bounds.patience = .seconds(1)
        bounds.restMin = .milliseconds(100)
        bounds.restMax = .seconds(1)
        return bounds
    }

    func begin(_ target: PushTarget, _ name: LaneName) {
        guard let push = self.prepared(for: target) else { return self.ended(target, .busy) }
        if self.lanes[name] == nil {
            self.lanes[name] = Lane(machine: PushLane(Self.laneBounds))
        }
        self.count += 1
        let identity = self.count
        self.flights[identity] = Flight(push: push, lane: name)
        self.tell(name, .push(PushLane.Push(identity: identity)))
    }

    func tell(_ name: LaneName, _ event: PushLane.Event) {
        let actions = self.lanes[name]?.machine.handle(
            event, at: self.world.now, draw: self.push.random.next())
        guard let actions else { return }
        self.lanes[name]?.wakeAt = nil
        for action in actions { self.carryOut(action, in: name) }
    }

    private func carryOut(_ action: PushLane.Action, in name: LaneName) {
        switch action {
        case .connect:
            self.lanes[name]?.connectionNumber += 1
            let number = self.lanes[name]?.connectionNumber ?? 0
            self.life.spawn { await self.connect(name, number) }
        case .disconnect:
            self.lanes[name]?.isConnected = false
            self.lanes[name]?.connectionNumber += 1
        case .send(let identity): self.transmit(identity)
        case .park(let identity):
            guard let flight = self.flights.removeValue(forKey: identity) else { return }
            self.push.count("parked")
            let isOpen = self.lanes[name]?.machine.state == .open
            self.ended(flight.push.target, isOpen ? .busy : .park(name))
        case .settle(let identity):
            guard let flight = self.flights.removeValue(forKey: identity) else { return }
            self.conclude(flight)
            if let machine = self.lanes[name]?.machine, machine.state == .probing,
                machine.queueCount == 0
            {
                self.handle(.laneOpened(name))
            }
        case .drop(let identity):
            guard let flight = self.flights.removeValue(forKey: identity) else { return }
            let push = flight.push
            self.push.giveUp(push.hit, push.name, of: push.target.group)
            self.ended(push.target, .settle)
        case .opened: self.handle(.laneOpened(name))
        case .wake(let time): self.lanes[name]?.wakeAt = time
        case .renewToken, .refused: break
        }
    }

    private func provider(of name: LaneName) -> Int { Int(name.place.suffix(1)) ?? 0 }

    private func isDown(_ provider: Int) -> Bool {
        self.push.providers[provider].downUntil > self.life.simulation.now
    }

    private func connect(_ name: LaneName, _ number: UInt64) async {
        await self.life.sleep(for: .milliseconds(1 + self.push.draw(20)))
        guard !self.life.isGone, self.lanes[name]?.connectionNumber == number else { return }
        let isUp = !self.isDown(self.provider(of: name))
        self.lanes[name]?.isConnected = isUp
        self.tell(name, isUp ? .connected : .connectFailed)
    }

    // MARK: Sending

    private func transmit(_ identity: UInt64) {
        guard var flight = self.flights[identity] else { return }
        self.count += 1
        flight.sending = self.count
        flight.sentAtMilliseconds = self.life.simulation.now / 1_000_000
        self.flights[identity] = flight
        let sending = flight.sending
        if PushRules.mustJudgeAgain(
            judgedAt: flight.push.judgedAt, now: self.world.now, bugs: self.push.bugs)
        {
            self.life.spawn { await self.judgeAgain(identity, sending) }
        } else {
            self.send(identity, sending)
        }
    }

    private func judgeAgain(_ identity: UInt64, _ sending: UInt64) async {
        guard let flight = self.flights[identity] else { return }
        let target = flight.push.target
        let deadline = self.world.now + .seconds(2)
        var look = await self.look(for: target, after: nil)
        guard !self.life.isGone, self.flights[identity]?.sending == sending else { return }
        if self.world.now > deadline { look = nil }
        self.push.count("judged again")
        if case .push(let push)? = look, push.isSame(as: flight.push) {
            self.replace(push)
            self.flights[identity]?.push = push
            return self.send(identity, sending)
        }
        self.flights[identity] = nil
        self.tell(flight.lane, .withdraw(identity: identity))
        if case .gone? = look {
            self.ended(target, .gone)
        } else {
            self.ended(target, .busy)
        }
    }

    private func send(_ identity: UInt64, _ sending: UInt64) {
        guard let flight = self.flights[identity] else { return }
        guard self.lanes[flight.lane]?.isConnected == true else {
            return self.tell(
                flight.lane, .answered(identity: identity, .unavailable(after: nil)))
        }
        let problem = self.push.leaves(
            flight.push.hit, in: flight.push.target.database, for: flight.push.target.subscriber,
            at: self.life.simulation.now)
        if let problem { self.life.simulation.report(push: problem) }
        self.life.spawn {
            let (answer, verdict) = await self.ask(flight)
            self.answered(identity, sending, answer, verdict)
        }
    }

    /// What the provider answers.
    private func ask(_ flight: Flight) async -> (PushLane.Answer, Verdict?) {
        let isQuiet = self.life.simulation.isQuiet
        await self.life.sleep(for: .milliseconds(1 + self.push.draw(isQuiet ? 10 : 60)))
        let number = self.provider(of: flight.lane)
        let push = flight.push
        let token = push.target.token
        let now = self.life.simulation.now
        if self.isDown(number) {
            if self.push.providers[number].answersWhileDown {
                return (.unavailable(after: nil), nil)
            }
            await self.life.sleep(for: .milliseconds(1_500))
            return (.unanswered, nil)
        }
        if let gone = self.push.providers[number].gone[token], gone.until > now {
            return (.final, .gone(at: gone.at))
        }
        if self.push.draw(30) == 0, !isQuiet { return (.final, .busy) }
        let problem = self.push.tell(
            push.hit, push.name, of: push.target.group, identity: push.identity)
        if let problem { self.life.simulation.report(push: problem) }
        // The answer is lost, or late.
        if self.push.draw(12) == 0, !isQuiet { return (.unanswered, nil) }
        await self.life.sleep(for: .milliseconds(self.push.draw(isQuiet ? 5 : 40)))
        return (.accepted, .accepted)
    }

    private func answered(
        _ identity: UInt64, _ sending: UInt64, _ answer: PushLane.Answer, _ verdict: Verdict?
    ) {
        guard !self.life.isGone, let flight = self.flights[identity], flight.sending == sending
        else { return }
        self.flights[identity]?.verdict = verdict
        self.tell(flight.lane, .answered(identity: identity, answer))
    }

    // MARK: Verdicts

    private func conclude(_ flight: Flight) {
        let target = flight.push.target
        switch flight.verdict {
        case .accepted?: self.ended(target, .settle)
        case .gone(let moment)?:
            self.life.spawn { await self.remove(flight.push, goneAt: moment) }
        case .busy?: self.ended(target, .retry(after: .milliseconds(300)))
        case nil: self.ended(target, .busy)
        }
    }

    private func remove(_ push: Prepared, goneAt moment: Int64) async {
        // On the way to the device's home.
        await self.life.sleep(for: .milliseconds(self.push.draw(30)))
        guard !self.life.isGone else { return }
        let target = push.target
        if let registered = self.push.devices[target.token]?.registeredAt {
            if PushRules.isRenewed(
                registered: registered, sentFor: push.registeredAt, goneAt: moment,
                bugs: self.push.bugs)
            {
                self.push.count("renewed devices kept")
                return self.ended(target, .retry(after: .milliseconds(300)))
            }
            if registered > moment {
                self.life.simulation.report(
                    push: "device \(target.token[1]) is removed, which was registered since")
            }
            self.push.devices[target.token]?.registeredAt = nil
            self.push.count("devices removed")
        }
        _ = await self.follow(
            push.name, target.subscriber, in: target.group, as: .device, .leave)
        if !self.life.isGone { self.ended(target, .gone) }
    }
}
