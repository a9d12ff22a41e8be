import StratusAdminModel
import Testing

@testable import StratusControl

/// What the doctor makes of causes that show themselves twice.
@Suite struct DiagnosisTests {
    private static func node(_ name: String, _ fill: (inout ClusterHealthAnswer.Node) -> Void)
        -> ClusterHealthAnswer.Node
    {
        ClusterHealthAnswer.Node {
            $0.name = name
            $0.isReachable = true
            fill(&$0)
        }
    }

    @Test func `a full disk is one finding, also where the node complains of it`() {
        let health = ClusterHealthAnswer {
            $0.nodes = [
                Self.node("a") {
                    $0.freeBytes = 1 << 20
                    $0.diskBytes = 100 << 30
                    $0.complaints = [ComponentReport("disk", "1 MiB is left")]
                },
                Self.node("b") {
                    $0.freeBytes = 1 << 30
                    $0.diskBytes = 100 << 30
                },
            ]
        }
        let sight = ClusterSight(ClusterAnswer(), earlier: ClusterAnswer(), health)
        #expect(
            Diagnosis.findings(sight).map(\.what) == [
                "node 'a', disk: 1 MiB is left", "node 'b' has 1024 MiB of disk left, of 102400",
            ])
        let status = StatusAnswer {
            $0.warnings = [ComponentReport("disk", "1 MiB is left")]
            $0.freeBytes = 1 << 20
            $0.diskBytes = 100 << 30
        }
        #expect(Diagnosis.findings(status).map(\.what) == ["disk: 1 MiB is left"])
    }

    @Test func `braces in what a node says are left alone`() {
        let health = ClusterHealthAnswer {
            $0.nodes = [
                Self.node("{reason}") {
                    $0.complaints = [ComponentReport("log", "{node} {advice} {")]
                }
            ]
        }
        let sight = ClusterSight(ClusterAnswer(), earlier: ClusterAnswer(), health)
        #expect(
            Diagnosis.findings(sight).map(\.what) == ["node '{reason}', log: {node} {advice} {"])
    }

    /// A cluster of which this many partitions wait for two silent nodes.
    private static func waiting(_ count: Int, recovered: Bool) -> ClusterSight {
        let health = ClusterHealthAnswer {
            $0.nodes = [
                Self.node("a") {
                    $0.node = 1
                    if recovered {
                        $0.complaints = [ComponentReport("recovery", "not taken yet")]
                    } else {
                        $0.complaints = [
                            ComponentReport("leaders", "256 partitions have no leader")
                        ]
                    }
                },
                ClusterHealthAnswer.Node {
                    $0.name = "c"
                    $0.node = 3
                },
                ClusterHealthAnswer.Node {
                    $0.name = "e"
                    $0.node = 5
                },
            ]
        }
        let cluster = ClusterAnswer {
            $0.replicaCount = 3
            $0.partitions = (0..<count).map { number in
                ClusterAnswer.Partition {
                    $0.partition = "\(number)"
                    $0.replicas = [1, 3, 5]
                }
            }
        }
        return ClusterSight(cluster, earlier: cluster, health)
    }

    @Test func `partitions that wait for the same nodes are one finding`() {
        let found = Diagnosis.findings(Self.waiting(256, recovered: false)).map(\.what)
        #expect(found.count == 3, "\(found)")
        #expect(
            found.contains(
                "256 partitions (0, 1, 2, 3, 4, 5, 6, 7, …) have 1 of 3 replicas, which is not a majority: "
                    + "they can neither be read nor written"))
        let one = Diagnosis.findings(Self.waiting(1, recovered: false)).map(\.what)
        #expect(
            one.contains(
                "partition 0 has 1 of 3 replicas, which is not a majority: it can neither be read nor written"
            ))
    }

    /// N6.
    @Test func `nothing is advised by a view that a recovery has replaced`() {
        var sight = Self.waiting(256, recovered: true)
        for isCurrent in [true, false] {
            sight.health.isCurrent = isCurrent
            let found =
                isCurrent
                ? Diagnosis.findings(sight)
                : [Diagnosis.withoutLeader(sight.health)].compactMap(\.self)
            #expect(found.count == 1)
            #expect(found.first?.what == "node 'a', recovery: not taken yet")
            #expect(found.first?.advice.contains("Start none of those") == true)
        }
    }

    @Test func `one cause is one finding on a node alone, and an answer fits on a screen`() {
        let status = StatusAnswer {
            $0.partitions = (0..<40).map { number in
                StatusAnswer.Partition {
                    $0.name = "\(number)"
                    $0.problem = "its rows are lost through entry \(number + 7)"
                }
            }
        }
        let found = Diagnosis.findings(status)
        #expect(
            found.map(\.what) == [
                "40 partitions (0, 1, 2, 3, 4, 5, 6, 7, …): its rows are lost through entry 7"
            ])
        let many = (0..<30).map { number in
            DoctorFinding {
                $0.what = "what \(number)"
                $0.advice = "advice"
            }
        }
        let text = DoctorCommand.text(many)
        #expect(text.split(separator: "\n").count <= 24)
        #expect(text.contains("- 21 more"))
    }

    @Test func `a node that does not answer is one finding, whatever its replicas lack`() {
        let health = ClusterHealthAnswer {
            $0.nodes = [
                ClusterHealthAnswer.Node {
                    $0.name = "a"
                    $0.node = 1
                }
            ]
            $0.groups = [
                ClusterHealthAnswer.Group {
                    $0.partition = "0"
                    $0.behind = [1]
                }
            ]
        }
        let sight = ClusterSight(ClusterAnswer(), earlier: ClusterAnswer(), health)
        #expect(Diagnosis.findings(sight).map(\.alarm) == ["silentNode"])
    }

    @Test func `a node alone is never removed`() {
        for component in Diagnosis.components + ["unheard of"] {
            let report = ComponentReport(component, "a reason")
            let found = Diagnosis.findings(
                StatusAnswer {
                    $0.notReady = [report]
                    $0.warnings = [report]
                    $0.partitions = [StatusAnswer.Partition { $0.problem = "its rows are lost" }]
                })
            #expect(found.count == 3)
            for finding in found {
                #expect(!finding.advice.contains("node remove"), "\(component): \(finding.advice)")
                #expect(!finding.advice.contains("node replace"), "\(component)")
            }
        }
    }
}
