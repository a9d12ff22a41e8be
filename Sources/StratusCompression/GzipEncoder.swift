import CZlib

/// Makes one gzip stream (RFC 1952) of pieces given one after another.
package struct GzipEncoder: ~Copyable {
    /// The level for answers compressed while the client waits; zlib counts from 1 to 9.
    package static let fast: Int32 = 1

    // zlib keeps a pointer back to the struct: it must not move while a stream is open.
    private let stream: UnsafeMutablePointer<z_stream>

    package init(level: Int32 = GzipEncoder.fast) {
        self.stream = .allocate(capacity: 1)
        self.stream.initialize(to: z_stream())
        let code = stratus_deflate_init_gzip(self.stream, level)
        precondition(code == Z_OK, "zlib refuses to begin (\(code)): no memory or no such level")
    }

    deinit {
        deflateEnd(self.stream)
        self.stream.deallocate()
    }

    /// Adds what comes of `piece` to `output`; little or nothing may come before the end.
    package mutating func encode(_ piece: [UInt8], into output: inout [UInt8]) {
        if piece.isEmpty { return }
        self.run(piece[...], Z_NO_FLUSH, into: &output)
    }

    package mutating func encode(_ piece: ArraySlice<UInt8>, into output: inout [UInt8]) {
        if piece.isEmpty { return }
        self.run(piece, Z_NO_FLUSH, into: &output)
    }

    /// Ends the stream; nothing may be added afterwards.
    package consuming func finish(into output: inout [UInt8]) {
        self.run([], Z_FINISH, into: &output)
    }

    private func run(_ piece: ArraySlice<UInt8>, _ flush: Int32, into output: inout [UInt8]) {
        let stream = self.stream
        piece.withUnsafeBufferPointer { input in
            // zlib's field is not const, but deflate only reads.
            stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
            stream.pointee.avail_in = UInt32(input.count)
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 16_384) { room in
                repeat {
                    stream.pointee.next_out = room.baseAddress
                    stream.pointee.avail_out = UInt32(room.count)
                    let code = deflate(stream, flush)
                    precondition(code != Z_STREAM_ERROR, "zlib's state is broken")
                    output += room[..<(room.count - Int(stream.pointee.avail_out))]
                } while stream.pointee.avail_out == 0
            }
            stream.pointee.next_in = nil
        }
    }
}

/// The whole of a gzip stream at once.
package enum Gzip {
    package static func compress(
        _ bytes: [UInt8], level: Int32 = GzipEncoder.fast
    ) -> [UInt8] {
        var encoder = GzipEncoder(level: level)
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count / 4 + 64)
        encoder.encode(bytes, into: &output)
        encoder.finish(into: &output)
        return output
    }

    package enum Failure: Error, Sendable, Equatable {
        /// Not gzip, damaged, or cut short.
        case malformed
        /// More than was allowed: a bomb, or a wrong limit.
        case tooLarge
    }

    /// Expands at most `sizeMax` bytes, whatever the stream claims.
    package static func expand(
        _ bytes: [UInt8], sizeMax: Int
    ) throws(Failure) -> [UInt8] {
        var stream = z_stream()
        precondition(stratus_inflate_init_gzip(&stream) == Z_OK, "zlib refuses to begin")
        defer { inflateEnd(&stream) }
        var output: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 16_384)
        var input = bytes
        let result: Failure? = input.withUnsafeMutableBufferPointer { input in
            stream.next_in = input.baseAddress
            stream.avail_in = UInt32(input.count)
            while true {
                let (code, count) = room.withUnsafeMutableBufferPointer { room in
                    stream.next_out = room.baseAddress
                    stream.avail_out = UInt32(room.count)
                    let code = inflate(&stream, Z_NO_FLUSH)
                    return (code, room.count - Int(stream.avail_out))
                }
                if output.count + count > sizeMax { return .tooLarge }
                output += room[..<count]
                if code == Z_STREAM_END { return stream.avail_in == 0 ? nil : .malformed }
                // Neither input taken nor output made: the rest is missing.
                guard code == Z_OK, count > 0 || stream.avail_in > 0 else { return .malformed }
            }
        }
        if let result { throw result }
        return output
    }
}
