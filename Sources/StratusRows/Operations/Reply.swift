import StratusCoding
import StratusModel

// Outcome of an operation and answer to a question, format 1: the body of an `Outcome` or of a
// `QueryAnswer`. An outcome is remembered for exactly-once.
//
// | bytes | what                                                                           |
// | ----- | ------------------------------------------------------------------------------ |
// | 1     | format, 1                                                                      |
// | 1     | number of the operation or question; or 0: it was refused                       |
// | …     | the fields of the outcome, of the answer or of the refusal                       |

enum Reply: FixedLevel {
    static var level: FeatureLevel { .one }

    static func encoded<Value: FormValue, Refusal: FormValue & Error>(
        _ result: Result<Value, Refusal>, to number: UInt8
    ) -> Bytes {
        var writer = ByteWriter(reserving: 64)
        writer.write(1 as UInt8)
        switch result {
        case .success(let value):
            writer.write(number)
            writer.write(form: value)
        case .failure(let refusal):
            writer.write(0 as UInt8)
            writer.write(form: refusal)
        }
        return writer.bytes
    }

    static func result<Value: FormValue, Refusal: FormValue & Error>(
        decoding body: Bytes, to number: UInt8
    ) throws(DecodingError) -> Result<Value, Refusal> {
        var reader = ByteReader(body)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        let result: Result<Value, Refusal>
        switch try reader.byte() {
        case 0: result = .failure(try reader.form(Refusal.self))
        case number: result = .success(try reader.form(Value.self))
        default: throw DecodingError(.malformed, at: 1)
        }
        try reader.finish()
        return result
    }
}
