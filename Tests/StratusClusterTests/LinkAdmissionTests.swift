import StratusCluster
import StratusModel
import Testing

/// Which connections on the peer port give way, and which never do (security audit 4).
@Suite struct LinkAdmissionTests {
    @Test func `security audit 4: the oldest connection of a crowded address gives way`() {
        var admission = LinkAdmission()
        for number in 1...4 as ClosedRange<UInt64> {
            #expect(admission.open(number, from: "10.0.0.1") == nil)
        }
        #expect(admission.open(5, from: "10.0.0.2") == nil)
        #expect(admission.open(6, from: "10.0.0.1") == 1)
        #expect(admission.open(7, from: "10.0.0.1") == 2)
        admission.close(6)
        #expect(admission.open(8, from: "10.0.0.1") == nil)
    }

    @Test func `security audit 4: connections without a certificate are bounded in all`() {
        var admission = LinkAdmission()
        for number in 0..<1_000 as Range<UInt64> {
            let displaced = admission.open(number, from: "10.0.\(number / 250).\(number % 250)")
            #expect(displaced == (number < 64 ? nil : number - 64))
            #expect(admission.unprovenCount <= 64)
        }
    }

    @Test func `security audit 4: one network of IPv6 counts as one address`() {
        var admission = LinkAdmission()
        for number in 1...4 as ClosedRange<UInt64> {
            #expect(admission.open(number, from: "[2001:db8:0:7::\(number)]") == nil)
        }
        #expect(admission.open(5, from: "[2001:db8:0:7:1:2:3:4]") == 1)
        #expect(admission.open(6, from: "[2001:db8:0:8::1]") == nil)
        for number in 10...13 as ClosedRange<UInt64> {
            #expect(admission.open(number, from: "[::1]") == nil)
        }
        #expect(admission.open(14, from: "[::1]") == 10)
    }

    @Test func `security audit 4: strangers never displace who proved a certificate`() {
        var admission = LinkAdmission()
        #expect(admission.open(1, from: "10.0.0.1") == nil)
        #expect(admission.prove(1, name: "b", isMember: true) == nil)
        admission.hear(1)
        #expect(admission.open(2, from: "10.0.0.1") == nil)
        #expect(admission.prove(2, name: "c", isMember: true) == nil)
        for number in 3..<5_000 as Range<UInt64> {
            let displaced = admission.open(number, from: "10.\(number % 7).0.1")
            #expect(displaced != 1 && displaced != 2)
        }
    }

    @Test func `security audit 4: one certificate that says no hello is bounded by its name`() {
        var admission = LinkAdmission()
        #expect(admission.open(1, from: "h") == nil)
        #expect(admission.prove(1, name: "b", isMember: true) == nil)
        admission.hear(1)
        for number in 2...5 as ClosedRange<UInt64> {
            #expect(admission.open(number, from: "h") == nil)
            #expect(admission.prove(number, name: "b", isMember: true) == nil)
        }
        // The connection that is heard stays; another name has places of its own.
        #expect(admission.open(6, from: "h") == nil)
        #expect(admission.prove(6, name: "b", isMember: true) == 2)
        #expect(admission.open(7, from: "h") == nil)
        #expect(admission.prove(7, name: "c", isMember: true) == nil)
    }

    @Test func `security audit 4: names that are no members share a bound`() {
        var admission = LinkAdmission()
        for number in 0..<16 as Range<UInt64> {
            #expect(admission.open(number, from: "h") == nil)
            #expect(admission.prove(number, name: "n\(number)", isMember: false) == nil)
        }
        #expect(admission.open(20, from: "h") == nil)
        #expect(admission.prove(20, name: "b", isMember: true) == nil)
        #expect(admission.open(21, from: "h") == nil)
        #expect(admission.prove(21, name: "n21", isMember: false) == 0)
    }
}
