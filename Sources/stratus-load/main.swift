import Glibc
import StratusCommandLine
import StratusLoad

exit(LoadProgram.run(Array(CommandLine.arguments.dropFirst())).rawValue)
