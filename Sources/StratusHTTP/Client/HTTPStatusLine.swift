/// `HTTP/1.x SP code SP [reason]` (RFC 9112 §4). The reason is for people and is dropped.
struct HTTPStatusLine: Sendable {
    let minorVersion: Int
    let code: Int

    init(_ line: Span<UInt8>) throws(HTTPRefusal) {
        let name: InlineArray<7, UInt8> = [0x48, 0x54, 0x54, 0x50, 0x2F, 0x31, 0x2E]
        guard line.count >= 12 else { throw .requestLine }
        for at in 0..<7 where line[at] != name[at] {
            throw at == 5 ? .version : .requestLine
        }
        guard line[7] == 0x30 || line[7] == 0x31 else { throw .version }
        guard line[8] == 0x20, ASCII.isDigit(line[9]), ASCII.isDigit(line[10]),
            ASCII.isDigit(line[11]), line.count == 12 || line[12] == 0x20
        else { throw .requestLine }
        self.minorVersion = Int(line[7] - 0x30)
        self.code =
            Int(line[9] - 0x30) * 100 + Int(line[10] - 0x30) * 10 + Int(line[11] - 0x30)
        guard (100...599).contains(self.code) else { throw .requestLine }
        for at in 12..<line.count where line[at] == 0x0D { throw .lineEnd }
    }
}
