// swift-tools-version: 6.2
import PackageDescription

// Every target shares these. A warning is an error everywhere: a fresh clone builds in silence.
let house: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .treatAllWarnings(as: .error),
]

/// For modules that perform no I/O: pointer code does not compile there unmarked.
let pure: [SwiftSetting] = house + [.strictMemorySafety()]

/// Hot generic code crosses module borders; this lets the optimiser follow it.
let release: [SwiftSetting] = [
    .unsafeFlags(["-cross-module-optimization"], .when(configuration: .release))
]

/// Tests are not optimised: that takes longer than they run.
let tests: [SwiftSetting] =
    house + [.unsafeFlags(["-Onone"], .when(configuration: .release))]

/// Deliberate bugs that the simulator must find: in debug builds, and in a release build made for
/// them with `STRATUS_PLANTED=1`. A release build without it does not contain them.
let planted: [SwiftSetting] =
    [.define("STRATUS_PLANTED", .when(configuration: .debug))]
    + (Context.environment["STRATUS_PLANTED"] != nil ? [.define("STRATUS_PLANTED")] : [])

/// A build that measures what each thread works on and reports what takes long (`PieceTimes`). It
/// is made with `STRATUS_TURNS=1`; what people run does not measure.
let turns: [SwiftSetting] =
    Context.environment["STRATUS_TURNS"] != nil ? [.define("STRATUS_TURNS")] : []

/// Targets stand in import order: a target may depend only on targets above it. A test of the house
/// compares what they import with this order.
let package = Package(
    name: "stratus",
    products: [
        .executable(name: "stratus", targets: ["stratus"]),
        .executable(name: "stratusctl", targets: ["stratusctl"]),
        .executable(name: "stratus-sim", targets: ["stratus-sim"]),
        .executable(name: "stratus-load", targets: ["stratus-load"]),
        .executable(name: "stratus-bench", targets: ["stratus-bench"]),
        .executable(name: "stratus-manual", targets: ["stratus-manual"]),
    ],
    targets: [
        // C: module maps, shim headers and inline wrappers; no logic.
        .systemLibrary(
            name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
        .systemLibrary(
            name: "CArgon2", pkgConfig: "libargon2", providers: [.apt(["libargon2-dev"])]),
        .systemLibrary(
            name: "CNghttp2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
        .target(name: "CShims"),

        // Pure.
        .target(name: "StratusModel", swiftSettings: pure + release + planted),
        .target(
            name: "StratusCoding", dependencies: ["StratusModel"], swiftSettings: pure + release),
        .target(
            name: "StratusRows", dependencies: ["StratusModel", "StratusCoding"],
            swiftSettings: pure + release),
        .target(
            name: "StratusPlacement",
            dependencies: ["StratusModel", "StratusCoding", "StratusRows"],
            swiftSettings: pure + release),
        .target(
            name: "StratusConsensus", dependencies: ["StratusModel", "StratusCoding"],
            swiftSettings: pure + release + planted),
        .target(
            name: "StratusQuery", dependencies: ["StratusModel", "StratusCoding", "StratusRows"],
            swiftSettings: pure + release),
        .target(
            name: "StratusRecords",
            dependencies: [
                "StratusModel", "StratusCoding", "StratusRows", "StratusPlacement", "StratusQuery",
            ],
            swiftSettings: pure + release),
        .target(name: "StratusHTTP", dependencies: ["StratusModel"], swiftSettings: pure + release),
        .target(name: "StratusCommandLine", swiftSettings: pure),
        .target(
            name: "StratusAdminModel",
            dependencies: ["StratusModel", "StratusHTTP", "StratusCommandLine"],
            swiftSettings: pure),

        // Shells.
        .target(
            name: "StratusSQLite", dependencies: ["CSQLite", "CShims", "StratusModel"],
            swiftSettings: house + release),
        .target(
            name: "StratusTLS", dependencies: ["COpenSSL"],
            swiftSettings: house + release),
        .target(
            name: "StratusSealing",
            dependencies: ["CArgon2", "COpenSSL", "StratusModel", "StratusCoding"],
            swiftSettings: house + release),
        .target(
            name: "StratusHTTP2", dependencies: ["CNghttp2", "StratusModel", "StratusHTTP"],
            swiftSettings: house + release),
        .target(
            name: "StratusCompression", dependencies: ["CZlib", "CZstd"],
            swiftSettings: house + release),
        .target(
            name: "StratusRuntime",
            dependencies: [
                "CShims", "StratusModel", "StratusHTTP", "StratusTLS", "StratusHTTP2",
                "StratusCompression",
            ],
            swiftSettings: house + release + turns),
        .target(
            name: "StratusProcess",
            dependencies: [
                "StratusModel", "StratusHTTP", "StratusCommandLine", "StratusTLS",
                "StratusCompression", "StratusRuntime",
            ], swiftSettings: house + release),
        .target(
            name: "StratusConfiguration",
            dependencies: [
                "StratusModel", "StratusHTTP", "StratusCommandLine", "StratusRuntime",
                "StratusProcess",
            ], swiftSettings: house + release),
        .target(
            name: "StratusControl",
            dependencies: [
                "StratusAdminModel", "StratusModel", "StratusCoding", "StratusHTTP",
                "StratusCommandLine", "StratusTLS",
                "StratusSealing", "StratusRuntime", "StratusProcess",
            ], swiftSettings: house + release),
        .target(
            name: "StratusStorage",
            dependencies: [
                "CShims", "StratusModel", "StratusCoding", "StratusRows", "StratusSQLite",
            ],
            swiftSettings: house + release + planted),
        .target(
            name: "StratusAssets",
            dependencies: [
                "CShims", "StratusModel", "StratusCoding", "StratusSealing", "StratusCompression",
                "StratusRuntime",
            ],
            swiftSettings: house + release),
        .target(
            name: "StratusCluster",
            dependencies: [
                "StratusModel", "StratusCoding", "StratusPlacement", "StratusConsensus",
                "StratusTLS", "StratusSealing", "StratusCompression", "StratusRuntime",
                "StratusStorage",
            ],
            swiftSettings: house + release + planted),
        .target(
            name: "StratusIdentity",
            dependencies: [
                "StratusModel", "StratusCoding", "StratusRows", "StratusRecords", "StratusHTTP",
                "StratusSealing", "StratusRuntime", "StratusCluster",
            ], swiftSettings: house + release),
        .target(
            name: "StratusPush",
            dependencies: ["StratusModel", "StratusHTTP", "StratusSealing"],
            swiftSettings: house + release),
        .target(
            name: "StratusContainers",
            dependencies: [
                "StratusAdminModel", "StratusModel", "StratusCoding", "StratusRows",
                "StratusQuery", "StratusRecords", "StratusHTTP", "StratusRuntime",
                "StratusCluster", "StratusIdentity",
            ], swiftSettings: house + release),
        .target(
            name: "StratusGateway",
            dependencies: [
                "StratusModel", "StratusCoding", "StratusQuery", "StratusRecords", "StratusHTTP",
                "StratusSealing", "StratusRuntime", "StratusAssets", "StratusCluster",
                "StratusIdentity", "StratusPush", "StratusContainers",
            ], swiftSettings: house + release),
        .target(
            name: "StratusAdmin",
            dependencies: [
                "StratusAdminModel", "StratusModel", "StratusCoding", "StratusPlacement",
                "StratusQuery",
                "StratusRecords",
                "StratusHTTP", "StratusTLS", "StratusRuntime", "StratusCluster",
                "StratusSealing", "StratusIdentity", "StratusPush", "StratusContainers",
            ], swiftSettings: house + release),
        .target(
            name: "StratusNode",
            dependencies: [
                "StratusModel", "StratusCoding", "StratusRows", "StratusRecords", "StratusHTTP",
                "StratusRuntime", "StratusPlacement", "StratusStorage", "StratusAssets",
                "StratusCluster",
                "StratusIdentity", "StratusPush", "StratusContainers", "StratusGateway",
                "StratusAdmin", "StratusTLS", "StratusSealing", "StratusHTTP2", "StratusSQLite",
                "StratusCommandLine", "StratusProcess", "StratusConfiguration",
            ], swiftSettings: house + release),
        // What stands in for the outside in tests, and what judges a history: no cluster.
        .target(
            name: "StratusDoubles",
            dependencies: ["StratusModel", "StratusCoding", "StratusRows", "StratusSealing"],
            swiftSettings: house + release),
        .target(
            name: "StratusSimulation",
            dependencies: [
                "StratusModel", "StratusCoding", "StratusRows", "StratusDoubles",
                "StratusPlacement",
                "StratusConsensus",
                "StratusQuery", "StratusRecords", "StratusSealing", "StratusSQLite",
                "StratusStorage", "StratusAssets", "StratusCluster", "StratusPush",
            ], swiftSettings: house + release + planted),
        .target(
            name: "StratusLoad",
            dependencies: [
                "StratusModel", "StratusHTTP", "StratusRuntime", "StratusCommandLine",
                "StratusProcess", "StratusControl", "StratusDoubles",
            ], swiftSettings: house + release),

        // Programs.
        .executableTarget(
            name: "stratus", dependencies: ["StratusNode"],
            swiftSettings: house),
        .executableTarget(
            name: "stratusctl",
            dependencies: ["StratusControl"], swiftSettings: house),
        .executableTarget(
            name: "stratus-sim",
            dependencies: [
                "StratusModel", "StratusConsensus", "StratusSimulation", "StratusCommandLine",
            ],
            swiftSettings: house),
        .executableTarget(
            name: "stratus-load", dependencies: ["StratusCommandLine", "StratusLoad"],
            swiftSettings: house),
        .executableTarget(
            name: "stratus-manual",
            dependencies: [
                "StratusModel", "StratusCommandLine", "StratusProcess", "StratusConfiguration",
                "StratusControl", "StratusNode", "StratusLoad",
            ],
            swiftSettings: house),
        .executableTarget(
            name: "stratus-bench",
            dependencies: [
                "CSQLite", "StratusModel", "StratusCoding", "StratusRows", "StratusHTTP",
                "StratusStorage",
                "StratusRuntime", "StratusTLS", "StratusSealing", "StratusQuery", "StratusRecords",
                "StratusSQLite", "StratusConsensus", "StratusPlacement",
                "StratusCluster",
                "StratusIdentity", "StratusDoubles",
            ], swiftSettings: house + release),

        // Tests.
        .testTarget(
            name: "StratusModelTests", dependencies: ["StratusModel"], swiftSettings: tests),
        .testTarget(
            name: "StratusCodingTests", dependencies: ["StratusModel", "StratusCoding"],
            exclude: ["Golden"], swiftSettings: tests),
        .testTarget(
            name: "HouseTests", dependencies: [],
            swiftSettings: tests),
        .testTarget(
            name: "StratusRowsTests",
            dependencies: ["StratusModel", "StratusCoding", "StratusRows", "StratusDoubles"],
            swiftSettings: tests),
        .testTarget(
            name: "StratusPlacementTests",
            dependencies: [
                "StratusModel", "StratusCoding", "StratusRows", "StratusPlacement",
                "StratusDoubles",
            ],
            exclude: ["Golden"], swiftSettings: tests),
        .testTarget(
            name: "StratusConsensusTests",
            dependencies: ["StratusModel", "StratusCoding", "StratusConsensus"],
            exclude: ["Traces"], swiftSettings: tests + planted),
        .testTarget(
            name: "StratusRecordsTests",
            dependencies: [
                "StratusModel", "StratusCoding", "StratusRows", "StratusConsensus", "StratusQuery",
                "StratusRecords",
                "StratusSQLite", "StratusStorage", "StratusCluster", "StratusDoubles",
                "StratusSimulation",
            ],
            exclude: ["Golden"], swiftSettings: tests),
        .testTarget(
            name: "StratusHTTPTests", dependencies: ["StratusModel", "StratusHTTP"],
            exclude: ["Fixtures"], swiftSettings: tests + planted),
        .testTarget(
            name: "StratusHTTP2Tests",
            dependencies: ["StratusModel", "StratusHTTP", "StratusHTTP2"], swiftSettings: tests),
        .testTarget(
            name: "StratusCommandLineTests", dependencies: ["StratusCommandLine"],
            swiftSettings: tests),
        .testTarget(
            name: "StratusSealingTests",
            dependencies: ["StratusModel", "StratusCoding", "StratusSealing"],
            exclude: ["Vectors"], swiftSettings: tests),
        .testTarget(
            name: "StratusRuntimeTests",
            dependencies: [
                "StratusModel", "StratusHTTP", "StratusHTTP2", "StratusRuntime", "StratusTLS",
                "StratusCompression", "ChildProcesses",
            ],
            exclude: ["Fixtures"], swiftSettings: tests),
        .testTarget(
            name: "StratusStorageTests",
            dependencies: [
                "CShims", "StratusModel", "StratusCoding", "StratusRows", "StratusSQLite",
                "StratusStorage", "StratusCluster", "StratusSealing",
                "StratusRuntime", "StratusDoubles",
            ],
            exclude: ["Golden"], swiftSettings: tests + planted),
        .testTarget(
            name: "StratusAssetsTests",
            dependencies: [
                "StratusModel", "StratusCoding", "StratusSealing", "StratusRuntime",
                "StratusStorage", "StratusDoubles", "StratusAssets",
            ],
            swiftSettings: tests),
        .testTarget(
            name: "StratusClusterTests",
            dependencies: [
                "StratusModel", "StratusCoding", "StratusRows", "StratusConsensus", "StratusTLS",
                "StratusRuntime", "StratusSQLite", "StratusStorage", "StratusCluster",
                "StratusDoubles",
            ],
            swiftSettings: tests + planted),
        .testTarget(
            name: "StratusSimulationTests",
            dependencies: [
                "StratusModel", "StratusCoding", "StratusConsensus", "StratusCompression",
                "StratusStorage", "StratusCluster", "StratusSQLite", "StratusDoubles",
                "StratusSimulation",
            ],
            swiftSettings: tests),
        .testTarget(
            name: "StratusPushTests",
            dependencies: [
                "StratusModel", "StratusHTTP", "StratusSealing", "StratusPush", "ChildProcesses",
            ],
            swiftSettings: tests),
        .testTarget(
            name: "StratusGatewayTests",
            dependencies: [
                "StratusAdminModel", "StratusModel", "StratusCoding", "StratusRows", "StratusQuery",
                "StratusRecords", "StratusHTTP",
                "StratusRuntime",
                "StratusAssets", "StratusCluster", "StratusIdentity", "StratusPush",
                "StratusContainers", "StratusGateway", "StratusAdmin",
                "StratusDoubles", "StratusSealing", "WireScenarios",
            ],
            exclude: ["Golden", "Vectors"],
            swiftSettings: tests + planted),
        .testTarget(
            name: "FuzzTests",
            dependencies: [
                "CShims", "StratusModel", "StratusCoding", "StratusRows", "StratusPlacement",
                "StratusHTTP",
                "StratusHTTP2",
                "StratusSealing", "StratusStorage", "StratusQuery", "StratusRecords",
                "StratusIdentity",
                "StratusCluster", "StratusConfiguration", "StratusPush", "StratusGateway",
                "StratusDoubles",
            ],
            path: "Tests/Fuzz", exclude: ["Corpus"], swiftSettings: tests),
        .testTarget(
            name: "StratusNodeTests",
            dependencies: [
                "StratusAdminModel", "StratusModel", "StratusCoding", "StratusRows",
                "StratusPlacement",
                "StratusHTTP",
                "StratusRuntime",
                "StratusCommandLine",
                "StratusPush", "StratusAdmin", "StratusNode", "StratusDoubles", "StratusLoad",
                "StratusTLS", "StratusProcess", "StratusConfiguration", "StratusControl",
                "ChildProcesses",
            ],
            exclude: ["Golden"],
            swiftSettings: tests),
        .testTarget(
            name: "StratusLoadTests",
            dependencies: [
                "StratusModel", "StratusHTTP", "StratusRuntime", "StratusCommandLine",
                "StratusDoubles", "StratusLoad",
            ],
            swiftSettings: tests),
        // Starting programs and hearing their end, for tests.
        .target(name: "CSpawn", path: "Tests/CSpawn"),
        .target(
            name: "ChildProcesses", dependencies: ["CSpawn", "StratusRuntime"],
            path: "Tests/ChildProcesses",
            swiftSettings: tests),
        .testTarget(
            name: "ChildProcessesTests", dependencies: ["ChildProcesses"], swiftSettings: tests),
        // Conversations over the wire, written once: in process and against a real one.
        .target(
            name: "WireScenarios", path: "Tests/WireScenarios", swiftSettings: tests),
        .testTarget(
            name: "WireTests",
            dependencies: ["StratusModel", "StratusHTTP", "WireScenarios", "ChildProcesses"],
            swiftSettings: tests),
        .testTarget(
            name: "WalkTests",
            dependencies: [
                "StratusModel", "StratusPlacement", "StratusSQLite", "StratusRecords",
                "StratusHTTP", "StratusRuntime", "StratusStorage",
                "StratusCluster", "StratusIdentity", "StratusGateway", "StratusNode",
                "StratusDoubles",
            ],
            swiftSettings: tests),
    ]
)

// An image is built from the sources alone, so that a changed test rebuilds nothing: see
// Deploy/Dockerfile.
if Context.environment["STRATUS_WITHOUT_TESTS"] != nil {
    package.targets.removeAll { $0.type == .test || $0.path?.hasPrefix("Tests/") == true }
}
