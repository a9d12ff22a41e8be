package import StratusModel
package import StratusRows

/// What a stored filter costs whoever asks it.
extension RecordFilter {
    /// Bytes of an operand that count as one.
    package static let bytesPerOperand = 16

    /// Its operands, as bounds on stored filters count them: a text counts one for each 16 bytes
    /// that it has begun, and a search no fewer than its words. Words are counted as often as they
    /// stand there, stop words too, since nothing is cut to tell.
    package var operandCount: Int {
        let isSearch =
            self.comparator == .containsAllTokens || self.comparator == .containsAnyTokens
        func count(_ scalar: Scalar) -> Int {
            let size: Int
            switch scalar {
            case .string(let text):
                size = text.utf8.count
                if isSearch {
                    return max(1, size / Self.bytesPerOperand, Tokeniser.wordCount(of: text))
                }
            case .bytes(let bytes): size = bytes.count
            case .int64, .double, .timestamp, .location, .reference, .asset: return 1
            }
            return max(1, (size + Self.bytesPerOperand - 1) / Self.bytesPerOperand)
        }
        switch self.operand {
        case .scalar(let scalar): return count(scalar)
        case .list(_, let elements): return elements.reduce(0) { $0 + count($1) }
        case .sealed: return 1
        }
    }

    /// Adds what compiling it costs.
    package func countCompiling(in work: inout ReadWork) {
        work.comparisonCount += ReadWork.comparisonsPerTouch / 4
        func count(_ scalar: Scalar) {
            work.comparisonCount += 1
            if case .string(let text) = scalar { work.cutByteCount += text.utf8.count }
        }
        switch self.operand {
        case .scalar(let scalar): count(scalar)
        case .list(_, let elements): for element in elements { count(element) }
        case .sealed: break
        }
    }
}
