import StratusModel
import Testing

@Suite struct RequestIdentityTests {
    @Test(arguments: [0, 1, .max, 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210] as [UInt64])
    func `an identity is 32 digits, or a UUID's five groups`(high: UInt64) {
        for low in [0, 9, 10, 0xA0A0_0505_9F9F_F9F9, high, ~high, .max] as [UInt64] {
            let identity = RequestIdentity(high: high, low: low)
            let digits = [high, low].map { half in
                let text = String(half, radix: 16)
                return String(repeating: "0", count: 16 - text.count) + text
            }.joined()
            #expect(identity.description == digits)
            var grouped = ""
            for (place, digit) in digits.enumerated() {
                if [8, 12, 16, 20].contains(place) { grouped.append("-") }
                grouped.append(digit)
            }
            #expect(identity.hexadecimal(isGrouped: true) == grouped)
        }
    }
}
