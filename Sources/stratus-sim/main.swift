// Everything is in SimulationProgram: top-level code is bound to the main actor.
SimulationProgram().run(Array(CommandLine.arguments.dropFirst()))
