import Glibc
import Synchronization

/// Opens TCP connections to a port, sends nothing on them, and opens a new one for each that is
/// closed.
final class SilentStrangers: Sendable {
    private let isOver = Atomic(false)

    /// - Parameter count: connections held open at any time.
    init(_ count: Int, at port: UInt16) {
        let thread = UnsafeMutablePointer<pthread_t>.allocate(capacity: 1)
        let work = Unmanaged.passRetained(Work(self, count, port))
        pthread_create(
            thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Work>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, work.toOpaque())
        pthread_detach(thread.pointee)
        thread.deallocate()
    }

    func leave() { self.isOver.store(true, ordering: .relaxed) }

    private final class Work {
        let strangers: SilentStrangers
        let count: Int
        let port: UInt16

        init(_ strangers: SilentStrangers, _ count: Int, _ port: UInt16) {
            self.strangers = strangers
            self.count = count
            self.port = port
        }

        func run() {
            var open: [Int32] = []
            while !self.strangers.isOver.load(ordering: .relaxed) {
                open.removeAll { descriptor in
                    var byte: UInt8 = 0
                    let count = recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT))
                    guard count == 0 || (count < 0 && errno != EAGAIN) else { return false }
                    close(descriptor)
                    return true
                }
                while open.count < self.count {
                    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                    guard descriptor >= 0 else { break }
                    var address = sockaddr_in()
                    address.sin_family = sa_family_t(AF_INET)
                    address.sin_port = self.port.bigEndian
                    address.sin_addr.s_addr = inet_addr("127.0.0.1")
                    let result = withUnsafePointer(to: &address) {
                        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                            connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                        }
                    }
                    guard result == 0 else {
                        close(descriptor)
                        break
                    }
                    open.append(descriptor)
                }
                usleep(20_000)
            }
            for descriptor in open { close(descriptor) }
        }
    }
}
