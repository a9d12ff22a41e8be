import StratusAdminModel
import Testing

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
}
