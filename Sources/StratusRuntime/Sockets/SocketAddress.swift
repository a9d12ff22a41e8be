import CShims
import Glibc

/// The address where a socket listens or connects: an address and port, or a path in the file
/// system.
package enum SocketAddress: Sendable, Hashable, CustomStringConvertible {
    /// Numeric, version 4 or 6, without brackets. Port 0 asks the system for a free one.
    case ip(String, port: UInt16)
    case unix(path: String)

    package var port: UInt16? {
        if case .ip(_, let port) = self { port } else { nil }
    }

    package var description: String {
        switch self {
        case .ip(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }

    /// The four or sixteen bytes of a numeric address.
    package var numericBytes: [UInt8]? {
        guard case .ip(let host, _) = self else { return nil }
        var bytes = [UInt8](repeating: 0, count: host.contains(":") ? 16 : 4)
        return inet_pton(self.family, host, &bytes) == 1 ? bytes : nil
    }

    /// The bytes of a numeric host: four also for what version 6 says of an address of version 4.
    package static func bytes(of host: String) -> [UInt8]? {
        guard host.utf8.count < Int(INET6_ADDRSTRLEN),
            let bytes = SocketAddress.ip(host, port: 0).numericBytes
        else { return nil }
        let isMapped =
            bytes.count == 16 && bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF
            && bytes[11] == 0xFF
        return isMapped ? Array(bytes[12...]) : bytes
    }

    /// An address without its port. Of IPv6 the half that names a site counts: one person has many.
    package static func site(of peer: String) -> String {
        // Nearly always there is nothing to take off.
        if !peer.utf8.contains(where: { $0 == 0x3A || $0 == 0x5B || $0 == 0x5D }) { return peer }
        let groups = peer.filter { $0 != "[" }.prefix { $0 != "]" }
            .split(separator: ":", omittingEmptySubsequences: false)
        if groups.count <= 2 { return String(groups.first ?? "") }
        let host = groups.joined(separator: ":")
        guard let bytes = Self.bytes(of: host), bytes.count == 16 else { return host }
        return (0..<4).map { group in
            String(UInt16(bytes[2 * group]) << 8 | UInt16(bytes[2 * group + 1]), radix: 16)
        }.joined(separator: ":")
    }

    var family: Int32 {
        switch self {
        case .ip(let host, _): host.contains(":") ? AF_INET6 : AF_INET
        case .unix: AF_UNIX
        }
    }

    /// Hands the address to `body` as the system wants it.
    func withSystemAddress<Result>(
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) throws(SocketError) -> Result {
        var storage = sockaddr_storage()
        let length: Int
        switch self {
        case .ip(let host, let port) where host.contains(":"):
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            guard inet_pton(AF_INET6, host, &address.sin6_addr) == 1 else {
                throw SocketError(.malformedAddress, during: "address")
            }
            length = Self.copy(&address, into: &storage)
        case .ip(let host, let port):
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else {
                throw SocketError(.malformedAddress, during: "address")
            }
            length = Self.copy(&address, into: &storage)
        case .unix(let path):
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            // The system wants room for a final zero.
            let isFit = withUnsafeMutableBytes(of: &address.sun_path) { room in
                guard !path.isEmpty, path.utf8.count < room.count else { return false }
                room.copyBytes(from: path.utf8)
                return true
            }
            guard isFit else { throw SocketError(.malformedAddress, during: "address") }
            length = Self.copy(&address, into: &storage)
        }
        return withUnsafePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(length)) }
        }
    }

    /// Reads an address that the system filled in; nil for families that Stratus does not use.
    init?(_ storage: inout sockaddr_storage) {
        switch Int32(storage.ss_family) {
        case AF_INET:
            var address = withUnsafeBytes(of: &storage) { $0.load(as: sockaddr_in.self) }
            let port = UInt16(bigEndian: address.sin_port)
            let text = withUnsafePointer(to: &address.sin_addr) { Self.text(AF_INET, $0) }
            self = .ip(text, port: port)
        case AF_INET6:
            var address = withUnsafeBytes(of: &storage) { $0.load(as: sockaddr_in6.self) }
            let port = UInt16(bigEndian: address.sin6_port)
            let text = withUnsafePointer(to: &address.sin6_addr) { Self.text(AF_INET6, $0) }
            self = .ip(text, port: port)
        case AF_UNIX:
            let path = withUnsafeBytes(of: &storage) { bytes in
                let path = bytes.dropFirst(MemoryLayout<sa_family_t>.size).prefix { $0 != 0 }
                return String(decoding: path, as: UTF8.self)
            }
            self = .unix(path: path)
        default: return nil
        }
    }

    private static func text(_ family: Int32, _ address: UnsafeRawPointer) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { room in
            inet_ntop(family, address, room.baseAddress!, socklen_t(room.count))
            return String(cString: room.baseAddress!)
        }
    }

    private static func copy<Address>(
        _ address: inout Address, into storage: inout sockaddr_storage
    ) -> Int {
        withUnsafeBytes(of: &address) { source in
            withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: source) }
            return source.count
        }
    }
}
