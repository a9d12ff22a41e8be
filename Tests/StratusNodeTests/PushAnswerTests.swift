import StratusHTTP
import StratusPush
import StratusRuntime
import Testing

@testable import StratusNode

/// What a provider's answer means for the lane, and for the push and its device.
@Suite struct PushAnswerTests {
    @Test func `P-03, P-07, P-09: answers of APNs`() {
        func answer(_ verdict: APNsVerdict) -> PushAnswer { PushAnswer(verdict) }
        #expect(answer(.accepted(identifier: nil)) == PushAnswer(.accepted, .accepted))
        #expect(answer(.gone(before: 7)) == PushAnswer(.final, .gone(at: 7)))
        #expect(answer(.unknownDevice) == PushAnswer(.final, .unknownDevice))
        #expect(
            answer(.deviceBusy(after: .seconds(3)))
                == PushAnswer(.final, .busy(after: .seconds(3))))
        #expect(
            answer(.unavailable(reason: "x", after: .seconds(2)))
                == PushAnswer(.unavailable(after: .seconds(2))))
        #expect(
            answer(.tokenRefused(reason: "x"))
                == PushAnswer(PushLane.Answer.tokenRefused(reason: "x"), nil))
        #expect(answer(.dropped(reason: "x")) == .dropped("x"))
    }

    /// One browser with another key must not stop a service that all containers share.
    @Test func `P-06, P-08: a Web Push service that believes no token means that browser`() {
        #expect(
            PushAnswer(WebPushVerdict.tokenRefused(status: 403))
                == PushAnswer(.final, .busy(after: .seconds(30))))
        #expect(PushAnswer(WebPushVerdict.gone) == PushAnswer(.final, .gone(at: nil)))
        #expect(
            PushAnswer(WebPushVerdict.unavailable(status: 503, after: nil))
                == PushAnswer(.unavailable(after: nil)))
    }

    @Test func `P-09: what was perhaps not carried out is sent again, and no end is a verdict`() {
        for error in [HTTP2ClientError.notProcessed, .cutShort, .closed] {
            #expect(PushAnswer(error) == PushAnswer(.unanswered))
        }
        for error in [HTTP2ClientError.resting, .notSpoken, .deadlinePassed, .full] {
            #expect(PushAnswer(error) == PushAnswer(.unavailable(after: nil)))
        }
    }
}
