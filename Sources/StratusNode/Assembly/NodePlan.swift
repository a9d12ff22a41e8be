package import StratusConfiguration
package import StratusGateway
package import StratusModel
import StratusStorage

/// The settings that a node is started with, and how to read them again.
package struct NodePlan: Sendable {
    package var settings: ConfigurationSettings
    /// Read again on SIGHUP; nil where there is no file.
    package var configurationPath: String?
    /// The overrides from the command line, which a reload must not forget.
    package var overrides: [ConfigurationLoading.Override]

    package init(
        settings: ConfigurationSettings, configurationPath: String? = nil,
        overrides: [ConfigurationLoading.Override] = []
    ) {
        self.settings = settings
        self.configurationPath = configurationPath
        self.overrides = overrides
    }

    package var dataDirectory: String { self.settings.text("dataDirectory") ?? "" }

    package var adminTokenFile: String {
        self.settings.text("admin.tokenFile") ?? self.dataDirectory + "/admin.token"
    }

    static func logLimits(_ settings: ConfigurationSettings) -> SegmentedLog.Limits {
        var limits = SegmentedLog.Limits()
        if settings.bool("development") { limits.segmentSize = .mebibytes(32) }
        return limits
    }

    package static func assets(_ settings: ConfigurationSettings) -> AssetSettings {
        var assets = AssetSettings()
        assets.url = settings.text("assets.url")
        assets.sizeMax = UInt64(settings.size("assets.sizeMax").raw)
        assets.unattachedSizeMax = UInt64(settings.size("assets.unattachedSizeMax").raw)
        func milliseconds(_ key: String) -> Int64 {
            settings.duration(key).clampedNanoseconds / 1_000_000
        }
        assets.graceMilliseconds = milliseconds("assets.graceTime")
        assets.linkLifeMilliseconds = milliseconds("assets.linkLife")
        assets.deduplicates = settings.bool("assets.deduplicate")
        assets.compresses = settings.bool("assets.compression")
        assets.resealingRate = UInt64(settings.size("assets.repairRate").raw)
        return assets
    }

    package static func limits(_ settings: ConfigurationSettings) -> Limits {
        var limits = Limits()
        limits.requestSizeMax = settings.size("limits.requestSizeMax")
        limits.bufferedBodySizeMax = settings.size("limits.bufferedBodySizeMax")
        limits.bufferedAnswerSizeMax = settings.size("limits.bufferedAnswerSizeMax")
        limits.operationCountMax = settings.integer("limits.operationCountMax")
        limits.recordSizeMax = settings.size("limits.recordSizeMax")
        limits.keyValueSizeMax = settings.size("limits.keyValueSizeMax")
        limits.privateDatabaseSizeMax = settings.size("limits.privateDatabaseSizeMax")
        limits.publicDatabaseSizeMax = settings.size("limits.publicDatabaseSizeMax")
        limits.queryTouchCountMax = settings.integer("limits.queryTouchCountMax")
        limits.queryOperandCountMax = settings.integer("limits.queryOperandCountMax")
        limits.commandDeadline = settings.duration("limits.commandDeadline")
        return limits
    }
}
