import StratusNode

ControlProgram.main()
