package import StratusModel

/// The limits of one HTTP message besides its body. Bodies have a limit per request.
package struct HTTPLimits: Sendable, Equatable {
    /// Method, target and version together. Beyond: 414.
    package var requestLineSizeMax: ByteCount = .kibibytes(16)
    /// All header lines with their line ends. Beyond: 431.
    package var headerSizeMax: ByteCount = .kibibytes(32)
    /// Beyond: 431.
    package var headerCountMax = 100
    /// Trailer lines are read and dropped.
    package var trailerSizeMax: ByteCount = .kibibytes(4)
    /// A chunk's size line with its extensions.
    package var chunkLineSizeMax: ByteCount = 256
    /// Framing that chunks may spend beyond 16 bytes each and twice their data, over a whole body.
    package var chunkOverheadMax: ByteCount = .kibibytes(16)
    /// How much of a body nobody asked for is read and thrown away to keep the connection.
    package var drainSizeMax: ByteCount = .kibibytes(64)
    /// Unless the caller sets another once the head is known.
    package var bodySizeMax: ByteCount = .mebibytes(16)

    package init() {}
}
