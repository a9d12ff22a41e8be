package import StratusModel
import StratusRuntime
import StratusSealing

/// Makes and opens the links of one container's shares.
package struct ShareLinks: Sendable {
    private let key: Secret<Bytes>

    fileprivate init(key: Bytes) { self.key = Secret(key) }

    /// Where the share of a link is, if there is one.
    package struct Place: Sendable, Hashable {
        /// 0: the home of the owner's database; n + 1: its bucket n.
        package var part: Int
        /// The owner's record name.
        package var owner: String

        package init(part: Int, owner: String) {
            self.part = part
            self.owner = owner
        }
    }

    /// - Parameter drawn: 128 random bits.
    /// - Returns: nil for an owner whose name is not `_` and 32 hexadecimal digits, and for a part
    ///   that no database has: such zones cannot be shared.
    package func link(drawn: UInt128, to place: Place) -> ShareLink? {
        guard NameRules.isUserRecordName(place.owner), let part = UInt8(exactly: place.part),
            let owner = UInt128(place.owner.dropFirst(), radix: 16)
        else { return nil }
        return self.masked(ShareLink(drawn: drawn, part: part, owner: owner))
    }

    /// Every link opens: one that nobody made leads to some partition that knows nothing of it.
    package func open(_ link: ShareLink) -> Place {
        let opened = self.masked(link)
        let digits = String(opened.owner, radix: 16)
        let zeros = String(repeating: "0", count: 32 - digits.count)
        return Place(part: Int(opened.part), owner: "_" + zeros + digits)
    }

    /// The mask is laid over a link, or taken off.
    private func masked(_ link: ShareLink) -> ShareLink {
        let mask = KeyedHash.hmac(key: self.key.reveal(), parts: [Bytes(link.bytes.prefix(16))])
        var masked = link
        masked.part ^= mask[0]
        masked.owner ^= mask[1..<17].reduce(0) { $0 << 8 | UInt128($1) }
        return masked
    }
}

extension IdentityKeys {
    /// The key comes from the master and never rotates: a link that was given away stays good.
    package func shareLinks(of container: ContainerReference) -> ShareLinks {
        ShareLinks(key: self.shareLink(container))
    }
}
