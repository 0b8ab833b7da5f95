# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# wavejit itself beneath AMD's HIP and ROCr. The programs are those of other folders; support/test_device.h opens HIP's GPUs in them.
#
# Forward tests, on either front: <name> <program> <GPUs> <filter>. A sample for ./dev test …
set(rocr_forward_tests
  "values attention_value_tests gfx942 Lengths/*/gfx942_fp16_d128_*_q33_*:Beside/*/gfx942_Mixed_*q70_k1200*:Beside/*/gfx942_LeftPadding_*q5_k200*"
  "pipelines attention_pipeline_tests gfx950 All/Pipelines.*EveryTileCount/dualwave_gfx950_fp16_d64*:All/DualWave.*gfx950_fp16_d64*"
  "split attention_split_tests gfx950 Fp16Causal/SplitPromises.WorksInTheEnginesOwnWorkspace/gfx950*"
  "mixed attention_mixed_tests gfx950 All/MixedBatches.LengthsThatDoNotMixOrLie/gfx950"
  "paged attention_paged_tests gfx942 All/PagedKeys.LengthsBeyondTheMaximumAreCutToIt/gfx942:All/PagedKeys.ALargeCacheHasTheKernelOfASmallOne/gfx942"
  "packed attention_modifier_tests gfx950 All/AttentionPacked.NeighboursAreFences/gfx950_fp16*"
  "softmax_lse softmax_lse_tests gfx950 Targets/SoftmaxLse.BitsOfARow*/gfx950"
  "sparse_indexer sparse_indexer_tests gfx950 Targets/SparseSelect.NanAndInfinity/gfx950")
# … and all that is of one target, for ./dev soak. Not in it: a board (the GPUs are whole ones), and rows of O that belong to two
# sequences, where whoever is last wins.
set(rocr_forward_programs values pipelines split mixed paged packed softmax_lse sparse_indexer)
set(rocr_not_in_it "*BoardsOfFewDies*:*WrongStartsStayInside*")

set(rocr_engine_tests rocr.edges.gfx950 rocr.devices.gfx942 rocr.serving.gfx950 rocr.front.gfx950 rocr.bad_input)
foreach(test IN LISTS rocr_forward_tests)
  separate_arguments(words UNIX_COMMAND "${test}")
  list(GET words 0 name)
  list(GET words 2 gpus)
  list(APPEND rocr_engine_tests rocr.forward.${name}.${gpus})
  foreach(target gfx942 gfx950)
    list(APPEND rocr_engine_tests rocr.forward.${name}.${target}.whole)
  endforeach()
endforeach()

function(wavejit_add_rocr_engine_tests)
  set(both_fronts ${with_rocm} ${CMAKE_CURRENT_SOURCE_DIR}/both_fronts.sh $<TARGET_FILE:wavejit_cli>)
  foreach(test IN LISTS rocr_forward_tests)
    separate_arguments(words UNIX_COMMAND "${test}")
    list(POP_FRONT words name program gpus filter)
    add_test(NAME rocr.forward.${name}.${gpus} COMMAND ${both_fronts} ${gpus} $<TARGET_FILE:${program}> ${filter})
    foreach(target gfx942 gfx950)
      set(whole rocr.forward.${name}.${target}.whole)
      add_test(NAME ${whole} CONFIGURATIONS soak COMMAND ${both_fronts} ${target} $<TARGET_FILE:${program}> "*${target}*-${rocr_not_in_it}")
      list(APPEND wholes ${whole})
    endforeach()
  endforeach()
  # One program on HIP's GPUs: AMD's HIP, and the simulated GPU beneath ROCr, stand in front of what it was linked with.
  set(on_hip env WAVEJIT_TEST_DEVICE=hip "LD_PRELOAD=libdtif.so libamdhip64.so.7")
  # Tests that fork stay out: beneath AMD's runtime a forked child that uses it is ended with one line
  # (docs/rocm-on-any-machine.md).
  add_test(NAME rocr.edges.gfx950
    COMMAND ${with_rocm} ${sim} --target gfx950 -- ${on_hip} $<TARGET_FILE:runtime_edges_tests> --gtest_brief=1
      --gtest_filter=-Edges.AForkedChildIsToldAndDoesNotHang:Edges.AChildOfAnIdleEngineMakesItsOwn)
  add_test(NAME rocr.devices.gfx942
    COMMAND ${with_rocm} ${sim} --target gfx942x3 -- ${on_hip} $<TARGET_FILE:runtime_capture_tests> --gtest_filter=Devices.*)
  # Presets of sanitizers are without examples.
  if(TARGET serving_engine)
    add_test(NAME rocr.serving.gfx950
      COMMAND ${with_rocm} ${CMAKE_CURRENT_SOURCE_DIR}/serving.sh $<TARGET_FILE:wavejit_cli> $<TARGET_FILE:serving_engine>)
  else()
    list(REMOVE_ITEM rocr_engine_tests rocr.serving.gfx950)
  endif()
  # Answers of HIP's functions that this project's own front gives alike (docs/simulated-gpu.md has the others).
  add_test(NAME rocr.front.gfx950
    COMMAND ${with_rocm} ${CMAKE_CURRENT_SOURCE_DIR}/front.sh $<TARGET_FILE:wavejit_cli> $<TARGET_FILE:hip_front_test>)
  add_test(NAME rocr.bad_input COMMAND ${with_rocm} ${CMAKE_CURRENT_SOURCE_DIR}/bad_input.sh $<TARGET_FILE:wavejit_cli>
           ${WAVEJIT_HSA_LIBRARY} $<TARGET_FILE:rocr_agents>)
  set_tests_properties(${rocr_engine_tests} PROPERTIES TIMEOUT 300 ENVIRONMENT "${WAVEJIT_TEST_KEPT};WAVEJIT_SIM_CHECK=all;WAVEJIT_SIM_RULES=strict" SKIP_RETURN_CODE 77)
  set_tests_properties(${wholes} PROPERTIES LABELS soak TIMEOUT 3600)
  set_tests_properties(rocr.front.gfx950 rocr.edges.gfx950 rocr.devices.gfx942 PROPERTIES ENVIRONMENT "${WAVEJIT_TEST_KEPT}")
  if(TARGET serving_engine)
    set_tests_properties(rocr.serving.gfx950 PROPERTIES ENVIRONMENT "${WAVEJIT_TEST_KEPT}")
  endif()
endfunction()
