import StratusModel
import StratusRows

/// References that leave their bucket, as one command changes them.
extension ZoneEdit {
    struct Outbound: Hashable {
        var referrer: String
        var reference: ActingReference
    }

    /// Whether a record of this name is in another bucket.
    func leaves(_ name: String) -> Bool {
        self.databaseID.recordBucket.map { !$0.holds(name) } ?? false
    }

    mutating func link(
        _ reference: ActingReference, from referrer: String, _ identity: RequestIdentity?
    ) {
        guard let identity else { preconditionFailure("a link that was not reserved") }
        self.outbound[Outbound(referrer: referrer, reference: reference)] = .some(identity)
        self.tell(.confirmed, reference, from: referrer, identity)
    }

    mutating func remove(
        _ reference: ActingReference, from referrer: String, over rows: RowView
    ) throws(StoreError) {
        guard self.leaves(reference.target) else {
            return try self.references.remove(reference, from: referrer, over: rows)
        }
        guard let identity = try self.identity(of: reference, from: referrer, over: rows) else {
            return
        }
        self.outbound[Outbound(referrer: referrer, reference: reference)] = .some(nil)
        if self.bugs.contains(.removedLinkNotTold) { return }
        self.tell(.removed, reference, from: referrer, identity)
    }

    /// A reference that the record had before, and that its save states again. It belongs to the
    /// target as it is now: what is still under way for an earlier record of that name passes it
    /// by.
    mutating func restate(
        _ reference: ActingReference, from referrer: String, at tag: ChangeTag,
        _ reserved: RequestIdentity?, over rows: RowView
    ) throws(StoreError) {
        if self.bugs.contains(.restatedReferenceNotRenewed) { return }
        if self.leaves(reference.target) {
            guard let reserved,
                try self.identity(of: reference, from: referrer, over: rows) != reserved
            else { return }
            try self.remove(reference, from: referrer, over: rows)
            self.link(reference, from: referrer, reserved)
        } else if reference.action == .deleteSelf,
            try self.isCascading(from: reference.target, over: rows)
        {
            try self.references.renew(reference, from: referrer, at: tag, over: rows)
        }
    }

    /// The reservation under which the record holds a reference that leaves the bucket; nil: it
    /// holds none.
    private func identity(
        of reference: ActingReference, from referrer: String, over rows: RowView
    ) throws(StoreError) -> RequestIdentity? {
        if let known = self.outbound[Outbound(referrer: referrer, reference: reference)] {
            return known
        }
        return try LinkRows(zone: self.zone.number).outbound(
            reference, of: referrer, over: rows)
    }

    private mutating func tell(
        _ kind: BucketMail.Kind, _ reference: ActingReference, from referrer: String,
        _ identity: RequestIdentity
    ) {
        let link = Link(
            target: reference.target, action: reference.action, referrer: referrer,
            identity: identity)
        guard let mail = BucketMail(kind, link, from: self.databaseID) else {
            preconditionFailure("a link out of a whole database")
        }
        self.mails.append(mail)
    }

    /// After a deletion: whoever refers to the record from another bucket hears of it, from a job.
    mutating func recallReferrers(
        of name: String, before tag: ChangeTag, over rows: RowView
    ) throws(StoreError) {
        guard self.databaseID.recordBucket != nil,
            try self.referrerCounts(of: name, over: rows).deleteSelf > 0
        else { return }
        self.enqueue(
            .dispatch(self.zone.number, self.place, target: name, before: tag, cursor: []))
    }

    func flushLinks(into rows: Rows) throws(StoreError) {
        let links = LinkRows(zone: self.zone.number)
        let changes = self.outbound.sorted {
            ($0.key.referrer, $0.key.reference) < ($1.key.referrer, $1.key.reference)
        }
        for (outbound, identity) in changes {
            try links.setOutbound(
                outbound.reference, of: outbound.referrer, identity, into: rows)
        }
    }
}
