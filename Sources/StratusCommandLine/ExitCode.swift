/// The exit code of every Stratus program. The numbers are those of `sysexits.h`, so a script can
/// tell a typing mistake from a node that is down. `Docs/reference/command-line.md` lists them for
/// readers.
package enum ExitCode: Int32, Sendable, CaseIterable {
    case success = 0
    /// The command ran and its answer is no: the node refused, or a check found something wrong.
    case refused = 1
    /// The arguments make no sense. Nothing was done.
    case usage = 64
    /// The input was read and is malformed.
    case malformedInput = 65
    /// A file that was named does not exist or cannot be read.
    case missingInput = 66
    /// Nobody answers at the address.
    case unavailable = 69
    /// A bug of ours.
    case bug = 70
    /// The system refused: a port that is taken, a name that is not found, no descriptors left.
    case system = 71
    /// A file could not be made or written.
    case cannotCreate = 73
    /// Reading or writing failed halfway.
    case inputOutput = 74
    /// Try again later: nothing is wrong with the request.
    case temporary = 75
    /// The credentials do not allow it.
    case denied = 77
    /// The configuration is wrong; the message names file, line and key.
    case configuration = 78
    /// Stopped by SIGINT, as shells report it.
    case interrupted = 130

    package var meaning: String {
        switch self {
        case .success: "done"
        case .refused: "the command ran and the answer is no"
        case .usage: "the arguments are wrong; nothing was done"
        case .malformedInput: "the input was read and is malformed"
        case .missingInput: "a named file does not exist or cannot be read"
        case .unavailable: "nobody answers at the address"
        case .bug: "a bug in Stratus"
        case .system: "the system refused: a port that is taken, a name that is not found"
        case .cannotCreate: "a file could not be made or written"
        case .inputOutput: "reading or writing failed halfway"
        case .temporary: "try again later; nothing is wrong with the request"
        case .denied: "the credentials do not allow it"
        case .configuration: "the configuration is wrong; the message names file, line and key"
        case .interrupted: "stopped by SIGINT"
        }
    }
}
