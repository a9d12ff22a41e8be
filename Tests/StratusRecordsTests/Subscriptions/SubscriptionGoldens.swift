import StratusCoding
import StratusModel
import StratusRows

@testable import StratusRecords

/// The forms of commands and questions about subscriptions, one file each.
enum SubscriptionGoldens {
    static let samples = Self.commands + Self.queries + Self.answers

    private static let token = Bytes(1...16)

    private static let modify = ModifySubscriptions(Bench.privateDatabase) {
        $0.operations = [
            .create(GoldenTests.subscription),
            .update(
                Subscription(
                    "z", .zone, zone: "Shelves",
                    content: Bytes(#"{"subscriptionType":"zone"}"#.utf8))),
            .delete("old"),
        ]
    }

    private static func follow(
        in database: DatabaseID, as follower: NewsFollower = .poll, _ step: FollowNews.Step
    ) -> FollowNews {
        FollowNews(database) {
            $0.subscriber = Bench.owner
            $0.token = step == .forget ? FollowNews.noToken : Self.token
            $0.follower = follower
            $0.step = step
        }
    }

    private static func advance(
        _ subscription: String = "", spent: String? = nil, told: ChangeTag? = nil
    ) -> FollowNews.Step {
        .advance(
            from: NewsPosition(number: 4, subscription: subscription),
            to: NewsPosition(number: 300), spent: spent, told: told)
    }

    private static let commands = [
        TypedGolden.command("command-modify-subscriptions-1", Self.modify),
        TypedGolden.command(
            "command-follow-news-1",
            Self.follow(in: Bench.privateDatabase, Self.advance("a", spent: "b"))),
        TypedGolden.command(
            "command-follow-news-2", Self.follow(in: Bench.publicDatabase, .begin)),
        TypedGolden.command(
            "command-follow-news-3", Self.follow(in: Bench.publicDatabase, .forget)),
        TypedGolden.command(
            "command-follow-news-4", Self.follow(in: Bench.publicDatabase, as: .device, .begin)),
        TypedGolden.command(
            "command-follow-news-5",
            Self.follow(in: Bench.privateDatabase, as: .device, Self.advance("a"))),
        TypedGolden.command(
            "command-follow-news-6", Self.follow(in: Bench.privateDatabase, as: .device, .leave)),
        TypedGolden.command(
            "command-follow-news-7",
            Self.follow(in: Bench.privateDatabase, .close(mark: 300, told: ChangeTag(77)))),
        TypedGolden.command(
            "command-follow-news-8",
            Self.follow(in: Bench.privateDatabase, Self.advance(told: ChangeTag(77)))),
        TypedGolden.outcome(
            "outcome-subscriptions-1", of: ModifySubscriptions.self,
            ModifiedSubscriptions {
                $0.results = [.saved, .deleted, .notFound, .zoneNotFound, .tooMany]
            }),
    ]

    private static let queries = [
        TypedGolden.query(
            "query-subscriptions-1", SubscriptionsAsk(Bench.privateDatabase) { $0.isShared = true }
        ),
        TypedGolden.query(
            "query-subscriptions-2", SubscriptionsAsk(Bench.publicDatabase) { $0.names = ["a"] }),
        TypedGolden.query(
            "query-news-1", NewsAsk(Bench.privateDatabase) { $0.token = Self.token }),
        TypedGolden.query(
            "query-news-2",
            NewsAsk(Bench.privateDatabase) {
                $0.token = Self.token
                $0.follower = .device
            }),
        TypedGolden.query(
            "query-news-3",
            NewsAsk(Bench.privateDatabase) {
                $0.token = Self.token
                $0.after = NewsPosition(number: 7, subscription: "s")
            }),
        TypedGolden.query(
            "query-news-4",
            NewsAsk(Bench.privateDatabase) {
                $0.token = Self.token
                $0.poll = 300
                $0.waits = true
            }),
        TypedGolden.query("query-audience-1", AudienceAsk(Bench.privateDatabase) { _ in }),
        TypedGolden.query(
            "query-audience-2",
            AudienceAsk(Bench.publicDatabase) {
                $0.change = AudienceAsk.Change {
                    $0.zone = "Z"
                    $0.record = "r"
                    $0.reason = .deleted
                }
            }),
        TypedGolden.query("query-waiting-devices-1", WaitingDevicesAsk()),
        TypedGolden.query(
            "query-waiting-devices-2",
            WaitingDevicesAsk {
                $0.after = [5, 1, 2]
                $0.limit = 7
            }),
    ]

    private static let audience = Audience {
        $0.lastEvent = 300
        $0.followers = [
            Audience.Follower {
                $0.token = Self.token
                $0.kind = .device
                $0.position = 7
                $0.milliseconds = -1
            }
        ]
        $0.hasRecord = true
        $0.findings = [
            Audience.Finding {
                $0.subscription = "s"
                $0.verdict = .filterFails
                $0.filter = 2
            }
        ]
        $0.isCut = true
    }

    private static let waiting = WaitingDevices {
        $0.followers = [
            WaitingDevices.Follower {
                $0.database = Bench.privateDatabase
                $0.subscriber = Bench.owner
                $0.token = Self.token
                $0.through = 300
            }
        ]
        $0.next = [5, 9]
    }

    private static func news(_ fill: (inout News) -> Void) -> News {
        News {
            $0.follower = NewsPosition(number: 3, subscription: "x")
            $0.position = NewsPosition(number: 4)
            fill(&$0)
        }
    }

    private static let answers = [
        TypedGolden.answer(
            "answer-subscriptions-1", to: SubscriptionsAsk.self,
            FoundSubscriptions { $0.found = [nil, GoldenTests.subscription] }),
        TypedGolden.answer("answer-audience-1", to: AudienceAsk.self, Audience()),
        TypedGolden.answer("answer-audience-2", to: AudienceAsk.self, Self.audience),
        TypedGolden.answer(
            "answer-waiting-devices-1", to: WaitingDevicesAsk.self, WaitingDevices()),
        TypedGolden.answer("answer-waiting-devices-2", to: WaitingDevicesAsk.self, Self.waiting),
        TypedGolden.answer("answer-news-1", to: NewsAsk.self, News()),
        TypedGolden.answer(
            "answer-news-2", to: NewsAsk.self,
            Self.news {
                $0.follower = NewsPosition(number: 3)
                $0.hasMore = true
                $0.hit = News.Hit(
                    subscription: GoldenTests.subscription, isShared: false,
                    event: .record(.deleted, GoldenTests.record, omitted: ["title"]))
            }),
        TypedGolden.answer(
            "answer-news-3", to: NewsAsk.self,
            Self.news {
                $0.hit = News.Hit(
                    subscription: GoldenTests.subscription, isShared: true,
                    event: .zone("Shelves", ChangeTag(9)))
            }),
        TypedGolden.answer("answer-news-4", to: NewsAsk.self, Self.news { $0.isPending = true }),
    ]
}
