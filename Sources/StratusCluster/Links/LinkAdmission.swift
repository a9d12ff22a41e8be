/// Decides which of the connections that others opened to this node are kept. Pure.
///
/// A connection passes three states: nothing is proven, a certificate is proven, its node is
/// accepted. Each state has its own bound, so that connections that prove nothing never take a
/// member's place. A new connection is always accepted; the oldest one of the crowded state is
/// closed. A peer that completes its handshake at once is through before newer connections reach
/// it.
package struct LinkAdmission: Sendable {
    package struct Bounds: Sendable, Equatable {
        /// Connections without a proven certificate, in all.
        package var unprovenMax = 64
        /// The same from one address.
        package var unprovenPerHostMax = 4
        /// Connections with one proven certificate name whose node is not heard yet.
        package var unheardPerNameMax = 4
        /// Connections with proven certificates that name no member: newcomers that ask to join.
        package var newcomersMax = 16

        package init() {}
    }

    private enum State: Equatable {
        case unproven(host: String)
        case unheard(name: String, isMember: Bool)
        case heard
    }

    private let bounds: Bounds
    /// In the order in which they were opened.
    private var connections: [(number: UInt64, state: State)] = []

    package init(_ bounds: Bounds = Bounds()) { self.bounds = bounds }

    /// Connections that have not proven a certificate.
    package var unprovenCount: Int {
        self.count {
            if case .unproven = $0 { true } else { false }
        }
    }

    /// A connection was opened.
    ///
    /// - Returns: the connection to close for it.
    package mutating func open(_ number: UInt64, from host: String) -> UInt64? {
        let site = Self.site(of: host)
        self.connections.append((number, .unproven(host: site)))
        return self.excess(beyond: self.bounds.unprovenPerHostMax) { $0 == .unproven(host: site) }
            ?? self.excess(beyond: self.bounds.unprovenMax) {
                if case .unproven = $0 { true } else { false }
            }
    }

    /// A connection has proven whose it is.
    ///
    /// - Returns: the connection to close for it.
    package mutating func prove(_ number: UInt64, name: String, isMember: Bool) -> UInt64? {
        self.set(number, .unheard(name: name, isMember: isMember))
        return self.excess(beyond: self.bounds.unheardPerNameMax) {
            if case .unheard(name, _) = $0 { true } else { false }
        }
            ?? self.excess(beyond: self.bounds.newcomersMax) {
                if case .unheard(_, false) = $0 { true } else { false }
            }
    }

    /// The node behind a connection is heard from now on.
    package mutating func hear(_ number: UInt64) { self.set(number, .heard) }

    /// A connection is closed.
    package mutating func close(_ number: UInt64) {
        self.connections.removeAll { $0.number == number }
    }

    private mutating func set(_ number: UInt64, _ state: State) {
        guard let index = self.connections.firstIndex(where: { $0.number == number }) else {
            return
        }
        self.connections[index].state = state
    }

    private func count(_ belongs: (State) -> Bool) -> Int {
        self.connections.count { belongs($0.state) }
    }

    private mutating func excess(beyond bound: Int, _ belongs: (State) -> Bool) -> UInt64? {
        guard self.count(belongs) > bound,
            let index = self.connections.firstIndex(where: { belongs($0.state) })
        else { return nil }
        return self.connections.remove(at: index).number
    }

    /// The part of an address that names a site: one machine may have any number of IPv6 addresses
    /// in a network of 64 bits. An address that cannot be read stands for itself.
    static func site(of host: String) -> String {
        guard host.contains(":"), !host.contains(".") else { return host }
        let parts = host.drop { $0 == "[" }.split(separator: ":", omittingEmptySubsequences: false)
        guard let gap = parts.dropFirst().firstIndex(of: ""), gap < 4 else {
            return parts.prefix(4).joined(separator: ":")
        }
        return parts[..<gap].joined(separator: ":") + "::"
    }
}
