import Foundation
import StratusModel

@testable import StratusRuntime

/// A client that sends exactly the given bytes, over a blocking socket.
///
/// Blocks the calling thread; every wait ends after a minute, so that a server that hangs fails the
/// test instead of stopping it.
final class RawClient {
    enum End: Equatable { case closed, cut, stillOpen }

    private var descriptor: Int32

    /// - Parameter source: the address that it comes from.
    init(
        _ address: SocketAddress, receiveBufferSize: Int32? = nil, from source: String? = nil
    ) throws {
        self.descriptor = socket(address.family, Int32(SOCK_STREAM.rawValue), 0)
        var patience = timeval(tv_sec: 60, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(self.descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, size)
        setsockopt(self.descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, size)
        if var receiveBufferSize {
            setsockopt(
                self.descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBufferSize,
                socklen_t(MemoryLayout<Int32>.size))
        }
        var noDelay: Int32 = 1
        setsockopt(
            self.descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &noDelay,
            socklen_t(MemoryLayout<Int32>.size))
        let descriptor = self.descriptor
        if let source {
            let bound = try SocketAddress.ip(source, port: 0).withSystemAddress {
                bind(descriptor, $0, $1)
            }
            precondition(bound == 0, "no address \(source)")
        }
        let code = try address.withSystemAddress { connect(descriptor, $0, $1) == 0 ? 0 : errno }
        guard code == 0 else { throw SocketError(code: code, during: "connect") }
    }

    deinit { self.close() }

    func close() {
        if self.descriptor >= 0 { Glibc.close(self.descriptor) }
        self.descriptor = -1
    }

    func send(_ text: String) { self.send(Array(text.utf8)) }

    /// Errors are the server's doing and show in what is received.
    func send(_ bytes: [UInt8]) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(
                    self.descriptor, $0.baseAddress! + sent, bytes.count - sent,
                    Int32(MSG_NOSIGNAL))
            }
            if count <= 0 { return }
            sent += count
        }
    }

    func endSending() { shutdown(self.descriptor, Int32(SHUT_WR)) }

    /// Closes with a reset instead of an end.
    func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            self.descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        self.close()
    }

    /// Receives until `isEnough`, the end, or the time-out.
    func receive(until isEnough: ([UInt8]) -> Bool = { _ in false }) -> (bytes: [UInt8], end: End) {
        var received: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 65_536)
        while !isEnough(received) {
            let count = recv(self.descriptor, &room, room.count, 0)
            if count == 0 { return (received, .closed) }
            if count < 0 { return (received, errno == EAGAIN ? .stillOpen : .cut) }
            received += room[..<count]
        }
        return (received, .stillOpen)
    }

    func text(until mark: String? = nil) -> (text: String, end: End) {
        let marked = mark.map { Array($0.utf8) }
        let (bytes, end) = self.receive { received in
            guard let marked else { return false }
            return received.count >= marked.count
                && received.suffix(marked.count).elementsEqual(marked)
        }
        return (String(decoding: bytes, as: UTF8.self), end)
    }

    /// Whether the server closes within the client's patience, whatever it still says.
    func isClosedByServer() -> Bool { self.receive().end != .stillOpen }
}

struct WaitedInVain: Error {}

/// Waits until `condition` holds, without a thread of the pool: a few tests that wait in a loop of
/// their own would stop all others on a small machine. The test fails if it waits in vain.
///
/// If all threads of the pool were taken for two minutes, the condition had no chance to change. So
/// a failure also needs many looks.
func eventually(_ condition: () -> Bool) async throws {
    let end = RealClock.now + .seconds(120)
    var looks = 0
    while !condition() {
        guard RealClock.now < end || looks < 1_000 else { throw WaitedInVain() }
        looks += 1
        try await Task.sleep(for: .milliseconds(1))
    }
}

/// Blocks the thread; for tests that must let the other side run.
func pause(microseconds: UInt32) { usleep(microseconds) }
