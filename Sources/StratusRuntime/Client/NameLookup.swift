import CShims
import Glibc

/// Turns a host's name into addresses. The system's resolver blocks, so it has a thread of its own.
package enum NameLookup {
    private static let worker = WorkerThread(name: "names")
    /// Names that strangers chose: servers that never answer for them hold up nothing else.
    private static let strangers = WorkerThread(name: "foreign names")

    /// - Parameters:
    ///   - host: a name, or an address with or without brackets.
    ///   - isForeign: whether somebody outside chose the name.
    package static func addresses(
        of host: String, port: UInt16, isForeign: Bool = false
    ) async throws(HTTPClientError) -> [SocketAddress] {
        let name =
            host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        let worker = isForeign ? self.strangers : self.worker
        let found = await worker.run { Self.blockingLookup(name, port) }
        guard !found.isEmpty else { throw .unreachable(nil) }
        return found
    }

    private static func blockingLookup(_ name: String, _ port: UInt16) -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(name, "\(port)", &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        var found: [SocketAddress] = []
        var next = list
        while let entry = next {
            var storage = sockaddr_storage()
            memcpy(&storage, entry.pointee.ai_addr, Int(entry.pointee.ai_addrlen))
            if let address = SocketAddress(&storage), !found.contains(address) {
                found.append(address)
            }
            next = entry.pointee.ai_next
        }
        return found
    }
}
