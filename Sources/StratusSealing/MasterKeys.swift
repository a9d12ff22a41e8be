/// The keys under which all others are wrapped, by version. They come from a file, a command, or
/// the cluster's secret.
package protocol MasterKeys: Sendable {
    /// The version that wraps what is written from now on.
    var sealing: UInt32 { get }
    /// Every version that this node was given, in order.
    var versions: [UInt32] { get }
    /// Nil: this node was not given that version.
    func key(_ version: UInt32) -> SecretBytes?
}
