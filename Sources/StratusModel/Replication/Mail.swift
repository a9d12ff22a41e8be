/// A message from one partition's state to another's.
///
/// Posting is a side effect of applying: the state that decides something keeps the message in its
/// own rows, in the same entry. The partition's leader carries it (`Docs/internals/mail.md`).
package struct Mail: Sendable, Equatable {
    /// Counts what one sender has posted to one receiver: 1 is the first, and none is left out.
    package var sequence: UInt64
    /// The time of the entry that posted it. The entry that receives it is later.
    package var sentAt: HybridTime
    /// Read by the state.
    package var body: Bytes

    package init(sequence: UInt64, sentAt: HybridTime, body: Bytes) {
        self.sequence = sequence
        self.sentAt = sentAt
        self.body = body
    }
}

/// The sender and receiver of mail. A partition may write to itself.
package struct MailRoute: Sendable, Hashable, Comparable, CustomStringConvertible {
    package var sender: GroupID
    package var receiver: GroupID

    package init(from sender: GroupID, to receiver: GroupID) {
        self.sender = sender
        self.receiver = receiver
    }

    package static func < (one: Self, other: Self) -> Bool {
        (one.sender, one.receiver) < (other.sender, other.receiver)
    }

    package var description: String { "\(self.sender)→\(self.receiver)" }
}

/// The content of one delivery: mail of one route, without a gap.
package struct MailBag: Sendable, Equatable {
    package var route: MailRoute
    /// In the order of their numbers.
    package var mails: [Mail]

    package init(_ route: MailRoute, _ mails: [Mail]) {
        self.route = route
        self.mails = mails
    }

    /// The time of the last mail: times grow with numbers.
    package var sentAt: HybridTime { self.mails.last?.sentAt ?? .zero }
}

/// A receiver's statement about one route: everything through here was applied.
package struct MailReceipt: Sendable, Equatable {
    package var route: MailRoute
    package var through: UInt64
    /// The time of an entry of the receiver's by which that held. The entry that takes the receipt
    /// is later. So a cut of the cluster whose sender no longer has the mail has it at its
    /// receiver.
    package var at: HybridTime

    package init(_ route: MailRoute, through: UInt64, at: HybridTime) {
        self.route = route
        self.through = through
        self.at = at
    }
}

/// The body of a ``Command`` of kind `.mail`. Its own numbers decide whether it applies: it has no
/// deadline, and applying it once needs no memory of requests.
package enum MailCommand: Sendable, Equatable {
    /// To the receiver.
    case deliver(MailBag)
    /// Tells the sender to release the received mail.
    case release(MailReceipt)

    /// The entry of this command is later than this.
    package var after: HybridTime {
        switch self {
        case .deliver(let bag): bag.sentAt
        case .release(let receipt): receipt.at
        }
    }
}

/// The result of applying a ``MailCommand``.
package enum MailOutcome: Sendable, Equatable {
    /// Everything of this route through this number is applied, as of an entry of this time.
    case received(through: UInt64, at: HybridTime)
    case released
    /// Not Stratus' own, or not readable by this version: nothing was done.
    case refused
}

/// Asks a partition for what waits in its outbox: the body of a ``Query`` of kind `.mail`.
package struct OutboxAsk: Sendable, Equatable {
    /// Receivers that are not asked about, ascending: their mail is under way.
    package var except: [GroupID]
    /// Receivers answered at most.
    package var bagCountMax: Int
    /// For each of them: so much mail at most, and one in any case.
    package var mailCountMax: Int
    package var bagSizeMax: Int

    package init(
        except: [GroupID] = [], bagCountMax: Int = 16, mailCountMax: Int = 64,
        bagSizeMax: Int = 256 << 10
    ) {
        self.except = except
        self.bagCountMax = bagCountMax
        self.mailCountMax = mailCountMax
        self.bagSizeMax = bagSizeMax
    }
}

/// The oldest mail for each receiver, and how much there is in all.
package struct Outbox: Sendable, Equatable {
    package struct Pile: Sendable, Equatable {
        package var receiver: GroupID
        package var mails: [Mail]

        package init(_ receiver: GroupID, _ mails: [Mail]) {
            self.receiver = receiver
            self.mails = mails
        }
    }

    /// In the order of the receivers' numbers.
    package var piles: [Pile]
    /// The mail that waits for all receivers together.
    package var waitingCount: UInt64
    package var waitingSize: UInt64
    /// Receivers were left out for want of room in the answer.
    package var hasMore: Bool

    package init(
        piles: [Pile] = [], waitingCount: UInt64 = 0, waitingSize: UInt64 = 0,
        hasMore: Bool = false
    ) {
        self.piles = piles
        self.waitingCount = waitingCount
        self.waitingSize = waitingSize
        self.hasMore = hasMore
    }
}
