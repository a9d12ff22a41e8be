import CZstd

/// Zstandard frames (RFC 8878), each with its content size and a checksum.
package enum Zstd {
    package enum Failure: Error, Sendable, Equatable {
        /// Not one whole frame, or damaged.
        case malformed
        /// More than was allowed, or a size that the frame does not tell.
        case tooLarge
    }

    /// One frame. Keep an encoder where many are made: its tables cost more than a small frame.
    package static func compress(_ bytes: [UInt8], level: Int32 = 1) -> [UInt8] {
        ZstdEncoder(level: level).frame(of: bytes)
    }

    /// Expands exactly one frame of at most `sizeMax` bytes.
    package static func expand(_ frame: [UInt8], sizeMax: Int) throws(Failure) -> [UInt8] {
        let size = ZSTD_getFrameContentSize(frame, frame.count)
        // The two highest values say 'unknown' and 'not a frame'.
        guard size < UInt64.max - 1 else { throw .malformed }
        guard size <= UInt64(sizeMax) else { throw .tooLarge }
        // Bytes after the frame would be taken for another frame and expanded too.
        guard ZSTD_findFrameCompressedSize(frame, frame.count) == frame.count else {
            throw .malformed
        }
        var count = 0
        let output = [UInt8](unsafeUninitializedCapacity: Int(size)) { room, initialized in
            count = ZSTD_decompress(room.baseAddress, room.count, frame, frame.count)
            initialized = ZSTD_isError(count) == 0 ? count : 0
        }
        guard ZSTD_isError(count) == 0, output.count == Int(size) else { throw .malformed }
        return output
    }
}

/// Makes many frames with one set of tables. One thread at a time.
package final class ZstdEncoder {
    private let context: OpaquePointer

    package init(level: Int32 = 1) {
        guard let context = ZSTD_createCCtx() else { preconditionFailure("zstd has no memory") }
        self.context = context
        ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level)
        ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)
    }

    deinit { ZSTD_freeCCtx(self.context) }

    package func frame(of bytes: [UInt8]) -> [UInt8] {
        let bound = ZSTD_compressBound(bytes.count)
        return [UInt8](unsafeUninitializedCapacity: bound) { room, initialized in
            let count = ZSTD_compress2(
                self.context, room.baseAddress, room.count, bytes, bytes.count)
            precondition(ZSTD_isError(count) == 0, "zstd refuses a frame with room enough")
            initialized = count
        }
    }
}
